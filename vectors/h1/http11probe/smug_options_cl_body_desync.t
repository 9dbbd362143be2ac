# SMUG-OPTIONS-CL-BODY-DESYNC: 400/close/pass-through; poisoned follow-up = warn
> OPTIONS / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
> helloGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 17\r\n
< \r\n
< OPTIONS / 5\n
< helloHTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 8\r\n
< \r\n
< GET / 0\n
