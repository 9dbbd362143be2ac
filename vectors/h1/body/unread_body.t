# An answer without a look at the body: the rest is read and dropped if it is short
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
> abc
~ 0 respond 200 \r\nok
= request 0 POST /
= reading yes
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
> deGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /
