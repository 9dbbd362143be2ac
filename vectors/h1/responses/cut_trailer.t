# A trailer that would split the answer; the answer has begun: cut
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 \r\n
~ 0 end x: a\rb\r\n\r\n
= request 0 GET /a
= app-fault 0 ResponseFieldValue
< HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n
= close abort
