# Extensions of exactly the limit
: limit chunk_extension_bytes_max 6
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 1;ab\r\n
> x\r\n
> 1;cd\r\n
> y\r\n
> 0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n\r\nPOST / 2\nxy
