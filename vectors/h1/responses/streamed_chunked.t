# RFC 9112 §7.1: an unknown one is sent in chunks; an empty piece is not the end
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 \r\n
~ 0 data abc
~ 0 data
~ 0 data \*26{d}
~ 0 end
= request 0 GET /a
< HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1a\r\n\*26{d}\r\n0\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
