# More than was announced; the answer has begun: cut
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 content-length: 2\r\n\r\n
~ 0 data abc
= request 0 GET /a
= app-fault 0 ResponseLength
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n
= close abort
