# RFC 9110 §10.1.1: ignored in HTTP/1.0
? continue 100-continue\r\n
? unknown x\r\n
> POST / HTTP/1.0\r\n
> Expect: \?
> Content-Length: 2\r\n
> \r\n
> ab
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 11\r\n\r\nPOST / 2\nab
= close clean
