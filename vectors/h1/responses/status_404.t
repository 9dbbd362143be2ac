# Another status
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 404 \r\nno
= request 0 GET /a
< HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno
