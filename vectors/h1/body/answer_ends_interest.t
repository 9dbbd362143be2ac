# Nothing more is told about a request that is answered
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
> abc
~ 0 want all
= request 0 POST /
= data 0 abc
~ 0 respond 200 \r\nok
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
> deGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /
