# COMP-VERSION-LEADING-ZEROS: 400 or close
> GET / HTTP/01.01\r\n
> Host: a\r\n
> \r\n
= fault VersionSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
