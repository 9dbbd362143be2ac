# RFC 9112 §2.2, §9.3.2: the blank line that is tolerated does not hide that the request behind it has to wait
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> OPTIONS /b HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 1\r\n
> \r\n
> x\r\n
> PUT /c HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 1 want all
= request 0 GET /a
= request 1 OPTIONS /b
= data 1 x
= end 1
~ 1 respond 200 \r\nb
~ 0 respond 200 \r\na
= request 2 PUT /c
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nb
~ 2 respond 200 \r\nc
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nc
