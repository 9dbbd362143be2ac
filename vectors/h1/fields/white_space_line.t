# RFC 9112 §2.2: a line of white space is no end
> GET / HTTP/1.1\r\n
> Host: a\r\n
>  \r\n
> \r\n
= fault LineFolding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
