# RFC 9112 §3: no second word within the longest head is no request line
: limit head_bytes_max 200
: limit target_bytes_max 100
> \*400{A} / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault RequestLineSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
