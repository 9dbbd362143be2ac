# Node fetch (undici)
> POST / HTTP/1.1\r\n
> host: localhost:8000\r\n
> connection: keep-alive\r\n
> Content-Type: text/plain;charset=UTF-8\r\n
> accept: */*\r\n
> accept-language: *\r\n
> sec-fetch-mode: cors\r\n
> user-agent: node\r\n
> accept-encoding: gzip, deflate\r\n
> content-length: 3\r\n
> \r\n
> abc
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nPOST / 3\nabc
