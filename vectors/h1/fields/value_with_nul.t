# RFC 9110 §5.5
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: a\x00b\r\n
> \r\n
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
