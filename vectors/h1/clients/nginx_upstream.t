# nginx as a proxy, by default with HTTP/1.0
> GET /a HTTP/1.0\r\n
> X-Forwarded-For: 192.0.2.1\r\n
> Host: backend\r\n
> Connection: close\r\n
> User-Agent: curl/8.5.0\r\n
> Accept: */*\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 9\r\n\r\nGET /a 0\n
= close clean
