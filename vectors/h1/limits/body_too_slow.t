# RFC 9110 §15.5.9: fewer than 240 bytes a second on average over ten seconds
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 10000\r\n
> \r\n
> \*100{x}
= deadline +10000
@ +10000
= fault BodyTooSlow blame=peer
< HTTP/1.1 408 Request Timeout\r\n...
= close linger
