# A rest that is dropped has to come in time as well
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
~ 0 respond 200 \r\nok
= request 0 POST /
= deadline +10000
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
@ +10000
= fault BodyTooSlow blame=peer
= close linger
