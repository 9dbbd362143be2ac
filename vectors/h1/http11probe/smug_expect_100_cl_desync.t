# SMUG-EXPECT-100-CL-DESYNC: 417/400/close preferred; poisoned follow-up = warn
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> Expect: 100-continue\r\n
> \r\n
> helloGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 100 Continue\r\n
< \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 14\r\n
< \r\n
< POST / 5\n
< helloHTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 8\r\n
< \r\n
< GET / 0\n
