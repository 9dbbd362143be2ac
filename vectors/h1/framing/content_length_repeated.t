# RFC 9112 §6.3: two lengths, two readings
? other 6\r\n
# Allowed by RFC 9112 §6.3, and never sent but to test
? same 5\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> Content-Length: \?
> \r\n
> 12345GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault ContentLengthSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
