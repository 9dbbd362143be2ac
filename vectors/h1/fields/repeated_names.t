# RFC 9110 §5.3: lists may come in several lines
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Accept: a\r\n
> Accept: b\r\n
> Cookie: c\r\n
> Cookie: d\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
