# RFC 9112 §5.2: a field for those who do not unfold, a value for those who do
> POST / HTTP/1.1\r\n
> Host: a\r\n
> X: a\r\n
>  Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault LineFolding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
