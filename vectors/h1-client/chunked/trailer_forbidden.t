# RFC 9110 §6.5.1: a field that frames or sets what the head has said
? length content-length: 5
? coding transfer-encoding: chunked
? cookie set-cookie: a=b
? encoding content-encoding: gzip
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 0\r\n
> \?\r\n
> \r\n
= head 200
= fault TrailerForbidden
= over
