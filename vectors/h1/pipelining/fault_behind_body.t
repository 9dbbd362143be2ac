# The byte behind a body begins a head
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 3\r\n
> \r\n
> abcd / HTTP/1.1\r\n
> \r\n
= fault HostMissing blame=peer
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nPOST / 3\nabc
< HTTP/1.1 400 Bad Request\r\n...
= close linger
