# Chrome, a CORS preflight
> OPTIONS /api HTTP/1.1\r\n
> Host: localhost:8000\r\n
> Connection: keep-alive\r\n
> Accept: */*\r\n
> Access-Control-Request-Method: PUT\r\n
> Access-Control-Request-Headers: content-type\r\n
> Origin: http://localhost:3000\r\n
> Sec-Fetch-Mode: cors\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 15\r\n\r\nOPTIONS /api 0\n
