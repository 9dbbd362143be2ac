# COMP-CHUNKED-EMPTY: 2xx or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 9\r\n
< \r\n
< POST / 0\n
