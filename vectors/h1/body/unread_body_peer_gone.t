# The peer leaves while its body is dropped
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
> abc
~ 0 respond 200 \r\nok
= request 0 POST /
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
! finish
= fault Truncated blame=peer
= close clean
