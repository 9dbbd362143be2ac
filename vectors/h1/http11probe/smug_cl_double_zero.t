# SMUG-CL-DOUBLE-ZERO: 400 or 2xx
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 00\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 9\r\n
< \r\n
< POST / 0\n
