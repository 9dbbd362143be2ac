# A final answer instead: the client may send its body or not, so the connection ends
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Expect: 100-continue\r\n
> Content-Length: 2\r\n
> \r\n
~ 0 respond 413 \r\nno
= request 0 POST /
< HTTP/1.1 413 Content Too Large\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno
= close linger
