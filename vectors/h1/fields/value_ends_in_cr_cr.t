# RFC 9112 §2.2
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: a\r\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
