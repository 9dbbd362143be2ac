# curl -d
> POST /form HTTP/1.1\r\n
> Host: localhost:8000\r\n
> User-Agent: curl/8.5.0\r\n
> Accept: */*\r\n
> Content-Length: 7\r\n
> Content-Type: application/x-www-form-urlencoded\r\n
> \r\n
> a=1&b=2
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 20\r\n\r\nPOST /form 7\na=1&b=2
