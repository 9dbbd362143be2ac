# RFC 9112 §5: the white space is optional
> GET / HTTP/1.1\r\n
> Host:a\r\n
> X:y\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
