# RFC 9112 §7.1: CRLF, not LF
? bare_lf abc\n
# RFC 9112 §7.1: CRLF stands where the size says
? too_long abcd\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 3\r\n
> \?
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault ChunkEnd blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
