# RFC 9110 §9.3.1: has no meaning, and is framed like any other
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 3\r\n
> \r\n
> abcGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n\r\nGET / 3\nabc
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
