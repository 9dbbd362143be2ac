# RFC 9112 §6.3, RFC 9110 §8.6: neither body nor length
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 204 content-length: 3\r\n\r\nabc
= request 0 GET /a
< HTTP/1.1 204 No Content\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
