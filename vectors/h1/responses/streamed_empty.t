# No piece at all
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 \r\n
~ 0 end
= request 0 GET /a
< HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
