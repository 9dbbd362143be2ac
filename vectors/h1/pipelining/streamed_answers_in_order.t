# A streamed answer that waits goes on as its turn comes
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 1 start 200 \r\n
~ 1 data x
= request 0 GET /a
= request 1 GET /b
~ 0 respond 200 \r\na
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n
~ 1 data yz
~ 1 end
< 2\r\nyz\r\n0\r\n\r\n
