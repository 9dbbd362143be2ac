# hey, and Go net/http
> GET / HTTP/1.1\r\n
> Host: localhost:8000\r\n
> User-Agent: hey/0.0.1\r\n
> Content-Type: text/html\r\n
> Accept-Encoding: gzip\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
