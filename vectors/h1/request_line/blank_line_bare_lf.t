# RFC 9112 §2.2: the blank line is CRLF, not LF
> \n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
