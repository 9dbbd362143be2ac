# Both directions are in use: a client that is quiet while the response streams is not too slow (servers D6)
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 10\r\n
> \r\n
~ 0 want all
~ 0 start 200 \r\n
= request 0 POST /
= deadline none
< HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n
@ +60000
> 0123456789
= data 0 0123456789
= end 0
~ 0 end
< 0\r\n\r\n
