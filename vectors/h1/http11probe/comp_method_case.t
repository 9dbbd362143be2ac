# COMP-METHOD-CASE: 400/405/501 or 2xx
> get / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 8\r\n
< \r\n
< get / 0\n
