# The client can tell from the missing end
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 \r\n
~ 0 data a
~ 0 abort
= request 0 GET /a
< HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n
= close abort
