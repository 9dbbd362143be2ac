# RFC 9112 §3: three words
> GET / \r\n
> Host: a\r\n
> \r\n
= fault RequestLineSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
