# 2400 bytes in ten seconds open the next window
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 10000\r\n
> \r\n
> \*2400{x}
@ +10000
= deadline +10000
@ +10000
= fault BodyTooSlow blame=peer
< HTTP/1.1 408 Request Timeout\r\n...
= close linger
