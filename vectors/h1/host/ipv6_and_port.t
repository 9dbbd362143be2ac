# RFC 9110 §7.2: [2001:db8::1]:8000 is a host
> GET / HTTP/1.1\r\n
> Host: [2001:db8::1]:8000\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
