# RFC 9112 §9.3: closed behind the answer
> GET /a HTTP/1.0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 9\r\n\r\nGET /a 0\n
= close clean
