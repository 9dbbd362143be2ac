# Digits of one size, leading zeros included
: limit chunk_size_digits_max 4
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 00001\r\n
> a\r\n
= fault ChunkSize blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
