# RFC 9112 §9.3.2: 100 belongs to its request, and waits for earlier answers
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> OPTIONS / HTTP/1.1\r\n
> Host: a\r\n
> Expect: 100-continue\r\n
> Content-Length: 2\r\n
> \r\n
~ 1 want all
= request 0 GET /a
= request 1 OPTIONS /
= deadline none
~ 0 respond 200 \r\na
= deadline +10000
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 100 Continue\r\n\r\n
> ab
= data 1 ab
= end 1
