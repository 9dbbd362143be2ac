# SMUG-TE-XCHUNKED: 400/501 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: xchunked\r\n
> Content-Length: 5\r\n
> \r\n
> hello
= fault TransferEncoding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
