# RFC 9112 §2.2: white space between the request line and the first field
> GET / HTTP/1.1\r\n
>  Host: a\r\n
> \r\n
= fault LineFolding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
