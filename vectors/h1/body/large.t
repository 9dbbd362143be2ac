# A body of 70 000 bytes
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 70000\r\n
> \r\n
> \*70000{d}
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 70013\r\n\r\nPOST / 70000\n\*70000{d}
