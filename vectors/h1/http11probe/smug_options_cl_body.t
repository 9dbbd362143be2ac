# SMUG-OPTIONS-CL-BODY: 400 or 2xx
> OPTIONS / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
> hello
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 17\r\n
< \r\n
< OPTIONS / 5\n
< hello
