# A chunked rest is dropped too
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 3\r\n
> ab
~ 0 respond 200 \r\nok
= request 0 POST /
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
> c\r\n
> 0\r\n
> \r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /
