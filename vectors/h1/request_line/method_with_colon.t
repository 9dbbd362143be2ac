# RFC 9110 §9.1: a method is a token
> GE:T / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault MethodSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
