# Chunk data are any bytes
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 6\r\n
> \r\n
> 0\r\n
> \r\r\n
> 0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 15\r\n\r\nPOST / 6\n\r\n0\r\n\r
