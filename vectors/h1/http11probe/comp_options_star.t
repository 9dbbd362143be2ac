# COMP-OPTIONS-STAR: 2xx
> OPTIONS * HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 12\r\n
< \r\n
< OPTIONS * 0\n
