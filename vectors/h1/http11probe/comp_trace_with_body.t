# COMP-TRACE-WITH-BODY: 400/405 or 200
> TRACE / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
> hello
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 15\r\n
< \r\n
< TRACE / 5\n
< hello
