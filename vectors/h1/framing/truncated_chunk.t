# RFC 9112 §8: the peer closed in the middle of a chunk
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 5\r\n
> hel
! finish
= fault Truncated blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close clean
