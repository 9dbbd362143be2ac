# …as long as it is short
: app none
: limit discard_bytes_max 4
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 3\r\n
> abc\r\n
~ 0 respond 200 \r\nok
= request 0 POST /
= reading yes
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
> 3\r\n
> def\r\n
= close linger
