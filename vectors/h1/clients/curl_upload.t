# curl -T - with its 100-continue not waited for
> PUT /up HTTP/1.1\r\n
> Host: localhost:8000\r\n
> User-Agent: curl/8.5.0\r\n
> Accept: */*\r\n
> Transfer-Encoding: chunked\r\n
> Expect: 100-continue\r\n
> \r\n
> 5\r\n
> hello\r\n
> 0\r\n
> \r\n
< HTTP/1.1 100 Continue\r\n\r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 15\r\n\r\nPUT /up 5\nhello
