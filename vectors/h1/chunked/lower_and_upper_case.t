# RFC 9112 §7.1: HEXDIG has no case
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> a\r\n
> 0123456789\r\n
> A\r\n
> 0123456789\r\n
> 0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 30\r\n\r\nPOST / 20\n01234567890123456789
