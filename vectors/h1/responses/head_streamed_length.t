# …and need not have the length
: app none
> HEAD /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 content-length: 5\r\n\r\n
~ 0 data abc
~ 0 end
= request 0 HEAD /a
< HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
