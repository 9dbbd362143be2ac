# RFC 9112 §2.2: the head ends in CRLF CRLF
> GET / HTTP/1.1\n
> Host: a\n
> \n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
