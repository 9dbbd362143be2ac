# curl 8
> GET /a?b=c HTTP/1.1\r\n
> Host: localhost:8000\r\n
> User-Agent: curl/8.5.0\r\n
> Accept: */*\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 13\r\n\r\nGET /a?b=c 0\n
