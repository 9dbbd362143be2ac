# MAL-CL-EMPTY: 400 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: \r\n
> \r\n
= fault ContentLengthSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
