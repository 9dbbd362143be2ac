# Said before the body was read, `connection: close` holds although nothing is left over in the end
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
~ 0 want all
~ 0 start 200 content-length: 2\r\n\r\n
= request 0 POST /
< HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\n
> 2\r\n
> ab\r\n
> 0\r\n
> \r\n
= data 0 ab
= end 0
= reading no
~ 0 data ok
~ 0 end
= close linger
< ok
