# aiohttp
> GET / HTTP/1.1\r\n
> Host: localhost:8000\r\n
> Accept: */*\r\n
> Accept-Encoding: gzip, deflate\r\n
> User-Agent: Python/3.11 aiohttp/3.9.5\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
