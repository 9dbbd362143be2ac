# SMUG-CL0-BODY-POISON: 400/close preferred; poisoned follow-up = warn
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 0\r\n
> \r\n
> XGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 9\r\n
< \r\n
< POST / 0\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 9\r\n
< \r\n
< XGET / 0\n
