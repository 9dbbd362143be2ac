# The deadline ends with the response's head, and begins anew for a rest that is dropped
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 10\r\n
> \r\n
~ 0 want all
= request 0 POST /
= deadline +10000
~ 0 start 200 content-length: 2\r\n\r\n
~ 0 data o
= deadline none
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\no
@ +60000
~ 0 data k
~ 0 end
= deadline +10000
< k
@ +10000
= fault BodyTooSlow blame=peer
= close linger
