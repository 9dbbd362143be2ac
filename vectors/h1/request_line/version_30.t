# RFC 9110 §15.6.6
> GET / HTTP/3.0\r\n
> Host: a\r\n
> \r\n
= fault VersionUnsupported blame=peer
< HTTP/1.1 505 HTTP Version Not Supported\r\n...
= close linger
