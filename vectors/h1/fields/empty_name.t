# RFC 9110 §5.1: a name is a token
> GET / HTTP/1.1\r\n
> Host: a\r\n
> : a\r\n
> \r\n
= fault FieldNameSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
