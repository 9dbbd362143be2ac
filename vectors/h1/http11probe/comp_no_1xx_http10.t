# COMP-NO-1XX-HTTP10: non-1xx response
> POST / HTTP/1.0\r\n
> Host: a\r\n
> Expect: 100-continue\r\n
> Content-Length: 5\r\n
> \r\n
> hello
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< connection: close\r\n
< content-length: 14\r\n
< \r\n
< POST / 5\n
< hello
= close clean
