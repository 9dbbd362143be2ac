# COMP-GET-WITH-CL-BODY: 400 or 2xx
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
> hello
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 13\r\n
< \r\n
< GET / 5\n
< hello
