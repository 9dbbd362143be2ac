# RFC 9112 §2.2: clients of the nineties send a CRLF behind a body
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 1\r\n
> \r\n
> x\r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nPOST / 1\nx
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
