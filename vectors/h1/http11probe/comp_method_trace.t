# COMP-METHOD-TRACE: 405/501 or 2xx
> TRACE / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 10\r\n
< \r\n
< TRACE / 0\n
