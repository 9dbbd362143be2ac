# A body that is kept by reference, not copied
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 \r\n\*20000{d}
= request 0 GET /a
< HTTP/1.1 200 OK\r\ncontent-length: 20000\r\n\r\n\*20000{d}
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
