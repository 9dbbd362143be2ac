# Names in lower case, in the order given; `Connection: keep-alive` is the server's business
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 X-B: 1\r\nSet-Cookie: a\r\nset-cookie: b\r\nConnection: keep-alive\r\nx-a:   2  \r\n\r\nok
= request 0 GET /a
< HTTP/1.1 200 OK\r\nx-b: 1\r\nset-cookie: a\r\nset-cookie: b\r\nx-a: 2\r\ncontent-length: 2\r\n\r\nok
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
