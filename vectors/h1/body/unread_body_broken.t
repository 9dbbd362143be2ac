# A fault in bytes that are dropped ends the connection; the answer has left
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 3\r\n
> ab
~ 0 respond 200 \r\nok
= request 0 POST /
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
> cdGET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault ChunkEnd blame=peer
= close linger
