# SMUG-TE-CASE-MISMATCH: 400 or 2xx
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: Chunked\r\n
> Content-Length: 5\r\n
> \r\n
> hello
= fault AmbiguousLength blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
