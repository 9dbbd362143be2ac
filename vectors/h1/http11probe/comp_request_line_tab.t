# COMP-REQUEST-LINE-TAB: 400 or 2xx
> GET\t/ HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault MethodSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
