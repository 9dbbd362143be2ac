# The version is a property of the request
> GET /a HTTP/1.0\r\n
> Connection: keep-alive\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: keep-alive\r\ncontent-length: 9\r\n\r\nGET /a 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /b 0\n
