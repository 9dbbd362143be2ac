# RFC9112-3.2-FRAGMENT-IN-TARGET: 400 or 2xx
> GET /path#frag HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
