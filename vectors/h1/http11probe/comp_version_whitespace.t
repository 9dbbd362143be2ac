# COMP-VERSION-WHITESPACE: 400 or close
> GET / HTTP/ 1.1\r\n
> Host: a\r\n
> \r\n
= fault RequestLineSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
