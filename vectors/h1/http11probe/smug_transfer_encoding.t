# SMUG-TRANSFER_ENCODING: 400 or 2xx
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer_Encoding: chunked\r\n
> Content-Length: 5\r\n
> \r\n
> hello
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 14\r\n
< \r\n
< POST / 5\n
< hello
