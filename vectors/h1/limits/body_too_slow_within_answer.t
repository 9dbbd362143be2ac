# The answer has begun: cut
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 10\r\n
> \r\n
~ 0 want all
~ 0 start 200 \r\n
= request 0 POST /
< HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n
@ +10000
= broken 0 BodyTooSlow
= fault BodyTooSlow blame=peer
= close abort
