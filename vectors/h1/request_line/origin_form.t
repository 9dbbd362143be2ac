# RFC 9112 §3.2.1: the ordinary form, with a query
> GET /a/b?c=d&e HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 17\r\n\r\nGET /a/b?c=d&e 0\n
