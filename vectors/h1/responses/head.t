# RFC 9110 §9.3.2: the head of a GET without its body
> HEAD /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 10\r\n\r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /b 0\n
