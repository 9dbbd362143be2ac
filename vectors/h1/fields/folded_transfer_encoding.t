# RFC 9112 §5.2: hides the coding from whoever does not unfold
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding:\r\n
>  chunked\r\n
> \r\n
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TransferEncoding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
