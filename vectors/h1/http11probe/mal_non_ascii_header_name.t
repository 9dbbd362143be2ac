# MAL-NON-ASCII-HEADER-NAME: 400 or close
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X-T\xC3\xABst: value\r\n
> \r\n
= fault FieldNameSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
