# How long a chunked rest is cannot be known: the client is told that the connection ends
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 3\r\n
> ab
~ 0 respond 200 \r\nok
= request 0 POST /
= close linger
= reading no
< HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok
