# MAL-URL-PERCENT-NULL: 400 or 2xx/404
> GET /path%00.html HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 20\r\n
< \r\n
< GET /path%00.html 0\n
