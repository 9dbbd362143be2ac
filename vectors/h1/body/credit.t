# Body bytes come only as far as they are wanted
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 6\r\n
> \r\n
> abcdefGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 0 POST /
= reading no
~ 0 want 2
= data 0 ab
= reading no
~ 0 want 3
= data 0 cde
= reading no
~ 0 want 9
= data 0 f
= end 0
= reading no
~ 0 respond 200 \r\na
= request 1 GET /
= reading yes
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
