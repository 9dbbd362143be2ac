# RFC 9112 §6.1: exactly "chunked", once
? chunked_gzip chunked, gzip
? chunked_suffix chunkedx
? chunked_twice chunked, chunked
? comma chunked,
? cow cow
? gzip gzip
? gzip_chunked gzip, chunked
? identity identity
? leading_comma ,chunked
? obs_text chunked\xa0
? parameter chunked;q=1
? quoted "chunked"
? xchunked xchunked
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: \?\r\n
> \r\n
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TransferEncoding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
