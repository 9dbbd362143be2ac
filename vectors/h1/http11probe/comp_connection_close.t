# COMP-CONNECTION-CLOSE: 2xx + close
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Connection: close\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< connection: close\r\n
< content-length: 8\r\n
< \r\n
< GET / 0\n
= close clean
