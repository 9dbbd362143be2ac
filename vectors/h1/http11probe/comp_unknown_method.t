# COMP-UNKNOWN-METHOD: 501/405/400 or close
> FOOBAR / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 11\r\n
< \r\n
< FOOBAR / 0\n
