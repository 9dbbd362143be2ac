# Over one body together (CVE-2023-39326, Go)
: limit chunk_extension_bytes_max 5
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 1;ab\r\n
> x\r\n
> 1;cd\r\n
> y\r\n
= fault ChunkExtension blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
