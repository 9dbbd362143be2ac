# RFC 9112 §9.3.2
> GET /1 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /2 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /3 HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /1 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /2 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /3 0\n
