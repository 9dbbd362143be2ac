# COMP-HTTP12-VERSION: 200 or 505
> GET / HTTP/1.2\r\n
> Host: a\r\n
> \r\n
= fault VersionUnsupported blame=peer
< HTTP/1.1 505 HTTP Version Not Supported\r\n...
= close linger
