# urllib closes
> GET / HTTP/1.1\r\n
> Accept-Encoding: identity\r\n
> Host: localhost:8000\r\n
> User-Agent: Python-urllib/3.11\r\n
> Connection: close\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 8\r\n\r\nGET / 0\n
= close clean
