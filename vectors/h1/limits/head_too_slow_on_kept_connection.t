# Counted from the first byte, not from the last answer
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /a 0\n
= deadline +75000
@ +60000
= deadline +15000
> G
= deadline +30000
@ +20000
> E
= deadline +10000
@ +10000
= fault HeadTooSlow blame=peer
< HTTP/1.1 408 Request Timeout\r\n...
= close linger
