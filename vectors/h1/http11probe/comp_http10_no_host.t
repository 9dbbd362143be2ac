# COMP-HTTP10-NO-HOST: 200 or 400
> GET / HTTP/1.0\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< connection: close\r\n
< content-length: 8\r\n
< \r\n
< GET / 0\n
= close clean
