# RFC 3986 §2.5: other bytes are percent-encoded
> GET /b\xc3\xbccher HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
