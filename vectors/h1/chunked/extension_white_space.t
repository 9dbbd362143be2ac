# RFC 9112 §7.1.1: BWS around semicolon and equals sign
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 1 ; a = b ; c="d"\r\n
> x\r\n
> 0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nPOST / 1\nx
