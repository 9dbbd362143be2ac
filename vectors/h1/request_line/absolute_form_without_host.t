# RFC 9110 §4.2.1: an http URI has a host
> GET http:///a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
