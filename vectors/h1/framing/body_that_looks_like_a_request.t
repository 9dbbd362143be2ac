# The body is the body, whatever it says
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 35\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 45\r\n\r\nPOST / 35\nGET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
