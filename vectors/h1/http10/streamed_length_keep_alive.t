# With a length it gets more
: app none
> GET /a HTTP/1.0\r\n
> Connection: keep-alive\r\n
> \r\n
~ 0 start 200 content-length: 2\r\n\r\n
~ 0 data ab
~ 0 end
= request 0 GET /a
< HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nab
> GET /a HTTP/1.0\r\n
> Connection: keep-alive\r\n
> \r\n
= request 1 GET /a
