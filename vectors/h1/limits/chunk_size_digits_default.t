# The default, as a client meets it
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 000000000000000001\r\n
> a\r\n
= fault ChunkSize blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
