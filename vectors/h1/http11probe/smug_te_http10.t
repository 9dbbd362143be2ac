# SMUG-TE-HTTP10: 400 or close
> POST / HTTP/1.0\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> Content-Length: 5\r\n
> \r\n
> hello
= fault TransferEncodingInHttp10 blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
