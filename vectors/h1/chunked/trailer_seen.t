# RFC 9110 §6.5: trailers reach the application, with lower-case names
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 1\r\n
> x\r\n
> 0\r\n
> X-Checksum: 1\r\n
> Y:\t2 \r\n
> \r\n
~ 0 want all
= request 0 POST /
= data 0 x
= end 0 x-checksum: 1\r\ny: 2\r\n
