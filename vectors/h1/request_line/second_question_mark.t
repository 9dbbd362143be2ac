# RFC 3986 §3.4: a question mark may stand in a query
> GET /a?b?c HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 13\r\n\r\nGET /a?b?c 0\n
