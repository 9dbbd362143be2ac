# RFC 9112 §3: a space, no other white space
> GET\t/ HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault MethodSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
