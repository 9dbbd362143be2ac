: limit fields_max 1
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 0\r\n
> a: b\r\n
> c: d\r\n
> \r\n
= head 200
= fault TooManyFields
