# COMP-TRACE-SENSITIVE: 405/501, or 200 without Auth
> TRACE / HTTP/1.1\r\n
> Host: a\r\n
> Authorization: Bearer secret-token-123\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 10\r\n
< \r\n
< TRACE / 0\n
