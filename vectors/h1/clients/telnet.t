# What a person types
> GET / HTTP/1.1\r\n
> Host: localhost\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
