# RFC 9110 §5.5: control bytes; terminals that show logs obey this one
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: \x1b[31m\r\n
> \r\n
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
