# A length of zero is said
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 \r\n
= request 0 GET /a
< HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
