# RFC 9112 §5.1: white space around a value is not part of it
> GET / HTTP/1.1\r\n
> Host: \t a \t\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
