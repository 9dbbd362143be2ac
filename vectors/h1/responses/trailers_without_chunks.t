# Where the framing can't carry them they are dropped
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 content-length: 1\r\n\r\n
~ 0 data a
~ 0 end X-Sum: 1\r\n\r\n
= request 0 GET /a
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
