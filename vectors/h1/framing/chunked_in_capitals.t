# RFC 9112 §7: names of codings have no case
> POST / HTTP/1.1\r\n
> Host: a\r\n
> TRANSFER-ENCODING: CHUNKED\r\n
> \r\n
> 1\r\n
> a\r\n
> 0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\nPOST / 1\na
