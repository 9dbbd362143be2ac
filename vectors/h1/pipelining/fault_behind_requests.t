# Requests before a fault are answered, nothing behind it is read
> GET /1 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /2 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> BAD\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault RequestLineSyntax blame=peer
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /1 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /2 0\n
< HTTP/1.1 400 Bad Request\r\n...
= close linger
