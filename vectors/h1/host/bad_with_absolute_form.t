# RFC 9112 §3.2.2: ignored, and still to be valid
> GET http://a/ HTTP/1.1\r\n
> Host: b/c\r\n
> \r\n
= fault HostSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
