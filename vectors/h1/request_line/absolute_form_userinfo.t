# RFC 9110 §4.2.4: userinfo from outside is refused
> GET http://u:p@a/ HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
