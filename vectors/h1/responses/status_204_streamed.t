# RFC 9112 §6.1: no transfer coding either
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 204 \r\n
~ 0 data abc
~ 0 end
= request 0 GET /a
< HTTP/1.1 204 No Content\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
