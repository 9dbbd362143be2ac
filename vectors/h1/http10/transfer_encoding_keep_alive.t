# RFC 9112 §6.1
> POST / HTTP/1.0\r\n
> Connection: keep-alive\r\n
> Transfer-Encoding: chunked\r\n
> Content-Length: 4\r\n
> \r\n
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TransferEncodingInHttp10 blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
