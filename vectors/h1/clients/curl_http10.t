# curl -0
> GET / HTTP/1.0\r\n
> Host: localhost:8000\r\n
> User-Agent: curl/8.5.0\r\n
> Accept: */*\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 8\r\n\r\nGET / 0\n
= close clean
