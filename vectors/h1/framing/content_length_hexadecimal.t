# RFC 9112 §6.3: a run of digits that fits, or nothing
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 0x5\r\n
> \r\n
> 12345GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault ContentLengthSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
