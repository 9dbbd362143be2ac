# Bytes that wait for credit are still a body when the peer has left
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 3\r\n
> \r\n
> abc
! finish
= request 0 POST /
~ 0 want 2
= data 0 ab
~ 0 want 2
= data 0 c
= end 0
~ 0 respond 200 \r\nok
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
= close clean
