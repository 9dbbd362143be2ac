# A body that is being read may still end
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 2\r\n
> \r\n
> a
~ 0 want all
! drain
= request 0 POST /
= data 0 a
= reading yes
> bGET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= data 0 b
= end 0
= reading no
~ 0 respond 200 \r\nok
< HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok
= close linger
