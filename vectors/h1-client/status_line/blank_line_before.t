# RFC 9112 §2.2 tolerates one before a request line only
> \r\n
> HTTP/1.1 200 OK\r\n
> content-length: 0\r\n
> \r\n
= fault StatusLineSyntax
