# RFC 9112 §5.2
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: a\r\n
> \tb\r\n
> \r\n
= fault LineFolding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
