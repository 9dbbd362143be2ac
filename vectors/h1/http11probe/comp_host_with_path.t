# COMP-HOST-WITH-PATH: 400 or close
> GET / HTTP/1.1\r\n
> Host: a/path\r\n
> \r\n
= fault HostSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
