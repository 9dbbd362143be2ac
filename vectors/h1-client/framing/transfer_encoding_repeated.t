# RFC 9112 §6.1
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> transfer-encoding: chunked\r\n
> \r\n
= fault TransferEncoding
