# SMUG-CHUNK-MISSING-TRAILING-CRLF: 400 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 5\r\n
> hello0\r\n
> \r\n
= fault ChunkEnd blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
