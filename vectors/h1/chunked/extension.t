# RFC 9112 §7.1.1: unknown extensions are ignored
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 1;a\r\n
> x\r\n
> 1;a=b\r\n
> y\r\n
> 1;a="b;\\"\\\\c";d\r\n
> z\r\n
> 0;e\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nPOST / 3\nxyz
