# A rest that costs more than a new connection: closed with the answer
: app none
: limit discard_bytes_max 4
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
~ 0 respond 200 \r\nok
= request 0 POST /
= close linger
= reading no
< HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok
