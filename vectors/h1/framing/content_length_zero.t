# RFC 9112 §6.2: no body
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nPOST / 0\n
