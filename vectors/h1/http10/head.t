# HEAD
> HEAD /a HTTP/1.0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 10\r\n\r\n
= close clean
