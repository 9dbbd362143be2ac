# A body of exactly the limit
: limit body_bytes_max 10
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 6\r\n
> abcdef\r\n
> 4\r\n
> ghij\r\n
> 0\r\n
> \r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 10\r\n
> \r\n
> 0123456789
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 20\r\n\r\nPOST / 10\nabcdefghij
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 20\r\n\r\nPOST / 10\n0123456789
