# RFC 9112 §3: nothing stands before the method
> \tGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault MethodSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
