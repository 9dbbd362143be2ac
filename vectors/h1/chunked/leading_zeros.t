# RFC 9112 §7.1: 1*HEXDIG
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 0003\r\n
> abc\r\n
> 000\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nPOST / 3\nabc
