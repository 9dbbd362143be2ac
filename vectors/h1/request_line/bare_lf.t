# RFC 9112 §2.2: the line ends in CRLF
> GET / HTTP/1.1\n
> Host: a\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
