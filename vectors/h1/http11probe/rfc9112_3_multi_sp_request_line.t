# RFC9112-3-MULTI-SP-REQUEST-LINE: 400 or 2xx
> GET  / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault RequestLineSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
