# RFC 9110 §7.2: 127.0.0.1 is a host
> GET / HTTP/1.1\r\n
> Host: 127.0.0.1\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
