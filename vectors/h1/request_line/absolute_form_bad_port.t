# RFC 3986 §3.2.3: a port is digits
> GET http://a:b/ HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
