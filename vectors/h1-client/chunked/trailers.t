# RFC 9112 §7.1.2
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 1\r\n
> b\r\n
> 0\r\n
> Server-Timing: a\r\n
> x: \r\n
> \r\n
= head 200
= data b
= end server-timing: a\r\nx: \r\n
= idle
