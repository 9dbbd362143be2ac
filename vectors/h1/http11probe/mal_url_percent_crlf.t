# MAL-URL-PERCENT-CRLF: 400 or 2xx/404
> GET /path%0d%0aX-Injected:%20true HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 36\r\n
< \r\n
< GET /path%0d%0aX-Injected:%20true 0\n
