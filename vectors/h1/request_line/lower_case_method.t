# RFC 9110 §9.1: methods are case-sensitive, so this is a method of its own
> get / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nget / 0\n
