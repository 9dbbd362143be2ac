# RFC 9112 §3.2.2: not a scheme this server speaks
> GET ftp://a/ HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
