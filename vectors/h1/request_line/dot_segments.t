# Dot segments are passed on: routes decide
> GET /a/../b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 14\r\n\r\nGET /a/../b 0\n
