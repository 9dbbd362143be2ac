# RFC9112-5-HEADER-NO-COLON: 400 or close
> GET / HTTP/1.1\r\n
> Host: a\r\n
> NoColonHere\r\n
> \r\n
= fault FieldNameSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
