# RFC 9112 §7.1.2: behind the last chunk
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 trailer: x-sum\r\n\r\n
~ 0 data a
~ 0 end X-Sum: 1\r\n\r\n
= request 0 GET /a
< HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx-sum: 1\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
