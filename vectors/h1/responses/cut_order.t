# Begun twice; the answer has begun: cut
? respond respond
? start start
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 content-length: 2\r\n\r\n
~ 0 \? 200 \r\n
= request 0 GET /a
= app-fault 0 ResponseOrder
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n
= close abort
