# ab -k
> GET / HTTP/1.0\r\n
> Connection: Keep-Alive\r\n
> Host: 127.0.0.1:8000\r\n
> User-Agent: ApacheBench/2.3\r\n
> Accept: */*\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: keep-alive\r\ncontent-length: 8\r\n\r\nGET / 0\n
