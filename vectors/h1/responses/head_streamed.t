# The body of a streamed answer is dropped too
: app none
> HEAD /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 \r\n
~ 0 data abc
~ 0 end x: y\r\n\r\n
= request 0 HEAD /a
< HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
