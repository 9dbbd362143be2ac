# COMP-UNKNOWN-TE-501: 400/501 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: gzip\r\n
> \r\n
= fault TransferEncoding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
