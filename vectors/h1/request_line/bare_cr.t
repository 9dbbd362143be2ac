# RFC 9112 §2.2: a CR alone ends nothing
> GET / HTTP/1.1\rHost: a\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
