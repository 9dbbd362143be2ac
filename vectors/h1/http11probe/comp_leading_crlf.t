# COMP-LEADING-CRLF: 400 or 2xx
> \r\n
> \r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault RequestLineSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
