# The answer to HEAD has no body, not even the server's own
: app none
> HEAD / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> x
~ 0 want all
= request 0 HEAD /
= broken 0 ChunkSize
= fault ChunkSize blame=peer
< HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\ncontent-length: 36\r\n\r\n
= close linger
