# Go net/http with a body of unknown length
> POST /rpc HTTP/1.1\r\n
> Host: localhost:8000\r\n
> User-Agent: Go-http-client/1.1\r\n
> Transfer-Encoding: chunked\r\n
> Content-Type: application/json\r\n
> Accept-Encoding: gzip\r\n
> \r\n
> 7\r\n
> {"a":1}\r\n
> 0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 19\r\n\r\nPOST /rpc 7\n{"a":1}
