: limit body_bytes_max 5
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 3\r\n
> abc\r\n
> 3\r\n
> abc\r\n
= head 200
= data abc
= fault BodyTooLong
