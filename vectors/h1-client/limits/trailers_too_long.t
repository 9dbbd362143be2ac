: limit trailer_bytes_max 10
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 0\r\n
> a: bcdefgh\r\n
> \r\n
= head 200
= fault TrailersTooLong
