# A body with its length
> POST / HTTP/1.0\r\n
> Content-Length: 3\r\n
> \r\n
> abc
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 12\r\n\r\nPOST / 3\nabc
= close clean
