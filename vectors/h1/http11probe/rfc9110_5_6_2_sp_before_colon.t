# RFC9110-5.6.2-SP-BEFORE-COLON: 400
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X-Test : value\r\n
> \r\n
= fault FieldNameSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
