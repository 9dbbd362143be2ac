# RFC 9110 §8.6: the length that a 200 would have had
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 304 content-length: 99\r\n\r\n
= request 0 GET /a
< HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
