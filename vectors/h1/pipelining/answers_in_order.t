# Later answers wait for earlier ones
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /c HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 2 respond 200 \r\nc
= request 0 GET /a
= request 1 GET /b
= request 2 GET /c
~ 1 respond 200 \r\nb
= reading yes
~ 0 respond 200 \r\na
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nbHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nc
