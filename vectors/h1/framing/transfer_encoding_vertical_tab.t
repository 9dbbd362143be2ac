# RFC 9110 §5.5: some take 0x0b for white space
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: \x0bchunked\r\n
> \r\n
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
