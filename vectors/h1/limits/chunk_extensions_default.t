# The default, as a client meets it
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 1;\*5000{a}\r\n
> x\r\n
= fault ChunkExtension blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
