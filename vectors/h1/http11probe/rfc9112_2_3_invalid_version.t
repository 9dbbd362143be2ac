# RFC9112-2.3-INVALID-VERSION: 400/505 or close
> GET / HTTP/9.9\r\n
> Host: a\r\n
> \r\n
= fault VersionUnsupported blame=peer
< HTTP/1.1 505 HTTP Version Not Supported\r\n...
= close linger
