# RFC 9110 §5.5: a value may be empty
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X:\r\n
> Y: \r\n
> Z:\t\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
