# RFC 9112 §9.2: it would answer the next request
> HTTP/1.1 200 OK\r\n
> content-length: 1\r\n
> \r\n
> aHTTP/1.1 200 OK\r\n
> \r\n
= head 200
= data a
= end
= fault Unasked
= left HTTP/1.1 200 OK\r\n\r\n
= over
