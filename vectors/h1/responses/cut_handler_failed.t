# The handler raised within its answer; the answer has begun: cut
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 content-length: 2\r\n\r\n
~ 0 data a
~ 0 fail HandlerFailed
= request 0 GET /a
= app-fault 0 HandlerFailed
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\na
= close abort
