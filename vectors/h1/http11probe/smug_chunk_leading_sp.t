# SMUG-CHUNK-LEADING-SP: 400 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
>  5\r\n
> hello\r\n
> 0\r\n
> \r\n
= fault ChunkSize blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
