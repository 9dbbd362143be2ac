# RFC 9112 §6.3
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 304 content-length: 99\r\n\r\n
~ 0 data abc
~ 0 end
= request 0 GET /a
< HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
