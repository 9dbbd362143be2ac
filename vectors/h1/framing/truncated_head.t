# RFC 9112 §8: the peer closed in the middle of a head
> GET / HTTP/1.1\r\n
> Host: a\r\n
! finish
= fault Truncated blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close clean
