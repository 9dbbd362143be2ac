# RFC 9112 §2.2: the line ends in CRLF
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: a\n
> Y: b\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
