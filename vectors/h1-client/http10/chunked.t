# RFC 9112 §6.1
> HTTP/1.0 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 0\r\n
> \r\n
= fault TransferEncodingInHttp10
