# A fault in a body whose handler runs: the server answers for it
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 3\r\n
> abcd
~ 0 want all
= request 0 POST /
= data 0 abc
= broken 0 ChunkEnd
= fault ChunkEnd blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
~ 0 respond 200 \r\ntoo late
= close linger
