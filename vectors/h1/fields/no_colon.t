# RFC 9112 §5
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X\r\n
> \r\n
= fault FieldNameSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
