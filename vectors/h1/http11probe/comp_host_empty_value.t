# COMP-HOST-EMPTY-VALUE: 400 or close
> GET / HTTP/1.1\r\n
> Host: \r\n
> \r\n
= fault HostSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
