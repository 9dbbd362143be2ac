# A Host that is there has to be one
> GET / HTTP/1.0\r\n
> Host: a b\r\n
> \r\n
= fault HostSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
