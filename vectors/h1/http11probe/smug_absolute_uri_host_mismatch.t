# SMUG-ABSOLUTE-URI-HOST-MISMATCH: 400 or 2xx
> GET http://other.example.com/ HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 8\r\n
< \r\n
< GET / 0\n
