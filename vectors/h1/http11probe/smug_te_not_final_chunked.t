# SMUG-TE-NOT-FINAL-CHUNKED: 400 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked, gzip\r\n
> \r\n
> 0\r\n
> \r\n
= fault TransferEncoding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
