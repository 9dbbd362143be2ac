# COMP-VERSION-CASE: 400 or close
> GET / http/1.1\r\n
> Host: a\r\n
> \r\n
= fault VersionSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
