# RFC 9112 §5.2: refused, for others take the line for a field
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: a\r\n
>  b\r\n
> \r\n
= fault LineFolding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
