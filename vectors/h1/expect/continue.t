# RFC 9110 §10.1.1: sent when the application wants the body
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Expect: 100-continue\r\n
> Content-Length: 2\r\n
> \r\n
< HTTP/1.1 100 Continue\r\n\r\n
> ab
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n\r\nPOST / 2\nab
