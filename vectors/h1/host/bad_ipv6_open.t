# RFC 9110 §7.2: not a host
> GET / HTTP/1.1\r\n
> Host: [::1\r\n
> \r\n
= fault HostSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
