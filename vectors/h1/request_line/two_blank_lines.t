# A second CRLF before a request line has no excuse
> \r\n
> \r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault RequestLineSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
