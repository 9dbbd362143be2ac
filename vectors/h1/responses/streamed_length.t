# A known length needs no coding
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 content-length: 4\r\n\r\n
~ 0 data ab
~ 0 data
~ 0 data cd
~ 0 end
= request 0 GET /a
< HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabcd
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
