# Safari 17
> GET /favicon.ico HTTP/1.1\r\n
> Host: localhost:8000\r\n
> Accept: */*\r\n
> Connection: keep-alive\r\n
> Accept-Language: de-DE,de;q=0.9\r\n
> User-Agent: Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Safari/605.1.15\r\n
> Referer: http://localhost:8000/\r\n
> Accept-Encoding: gzip, deflate\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 19\r\n\r\nGET /favicon.ico 0\n
