# MAL-URL-BACKSLASH: 400 or 2xx/404
> GET /path\\file HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 17\r\n
< \r\n
< GET /path\\file 0\n
