# COMP-WHITESPACE-BEFORE-HEADERS: 400 or close
> GET / HTTP/1.1\r\n
>  \r\n
> Host: a\r\n
> \r\n
= fault LineFolding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
