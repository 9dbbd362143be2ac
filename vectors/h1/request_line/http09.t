# HTTP/0.9 has no version and no fields
> GET /\r\n
> \r\n
= fault RequestLineSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
