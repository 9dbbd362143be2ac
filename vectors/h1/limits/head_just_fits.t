# A head of exactly the limit
: limit head_bytes_max 100
: limit target_bytes_max 50
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: \*68{x}\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
