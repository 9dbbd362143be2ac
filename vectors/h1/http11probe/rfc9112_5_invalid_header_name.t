# RFC9112-5-INVALID-HEADER-NAME: 400 or close
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Bad[Name: value\r\n
> \r\n
= fault FieldNameSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
