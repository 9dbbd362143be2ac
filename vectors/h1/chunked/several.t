# RFC 9112 §7.1
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 3\r\n
> abc\r\n
> 1\r\n
> d\r\n
> A\r\n
> 0123456789\r\n
> 0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 24\r\n\r\nPOST / 14\nabcd0123456789
