# RFC 9112 §3: a space, no other white space
> GET /\tHTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
