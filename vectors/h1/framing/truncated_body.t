# RFC 9112 §8: the peer closed in the middle of a body
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
> 123
! finish
= fault Truncated blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close clean
