# Bytes that come unasked settle the matter
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Expect: 100-continue\r\n
> Content-Length: 2\r\n
> \r\n
> ab
= request 0 POST /
~ 0 want all
= data 0 ab
= end 0
< HTTP/1.1 100 Continue\r\n\r\n
~ 0 respond 200 \r\nok
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
