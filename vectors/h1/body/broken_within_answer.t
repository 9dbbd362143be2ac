# A fault in a body whose answer has begun: cut, so that the client can tell
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 3\r\n
> abc
~ 0 start 200 \r\n
~ 0 data x
~ 0 want all
= request 0 POST /
= data 0 abc
< HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n
> d
= broken 0 ChunkEnd
= fault ChunkEnd blame=peer
= close abort
