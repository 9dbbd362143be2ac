# requests
> GET /get?a=1 HTTP/1.1\r\n
> Host: localhost:8000\r\n
> User-Agent: python-requests/2.32.3\r\n
> Accept-Encoding: gzip, deflate\r\n
> Accept: */*\r\n
> Connection: keep-alive\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 15\r\n\r\nGET /get?a=1 0\n
