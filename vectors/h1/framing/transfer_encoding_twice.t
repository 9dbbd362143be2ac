# RFC 9112 §6.1: exactly "chunked", once
? chunked_first chunked\r\n
? identity_first identity\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: \?
> Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TransferEncoding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
