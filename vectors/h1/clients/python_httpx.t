# httpx, with JSON
> POST /json HTTP/1.1\r\n
> Host: localhost:8000\r\n
> Accept: */*\r\n
> Accept-Encoding: gzip, deflate\r\n
> Connection: keep-alive\r\n
> User-Agent: python-httpx/0.27.0\r\n
> Content-Length: 7\r\n
> Content-Type: application/json\r\n
> \r\n
> {"a":1}
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 20\r\n\r\nPOST /json 7\n{"a":1}
