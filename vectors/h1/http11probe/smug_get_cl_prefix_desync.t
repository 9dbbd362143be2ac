# SMUG-GET-CL-PREFIX-DESYNC: 400/close preferred; extra response on step 2 = warn
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 25\r\n
> \r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 34\r\n
< \r\n
< GET / 25\n
< GET / HTTP/1.1\r\n
< Host: a\r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 8\r\n
< \r\n
< GET / 0\n
