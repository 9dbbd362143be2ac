# RFC 9110 §5.5: bytes above 0x7f are opaque
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: \x80\xff\xc3\xa9\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
