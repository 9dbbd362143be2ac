# RFC 9112 §7.1
> HTTP/1.1 200 OK\r\n
> Transfer-Encoding: Chunked\r\n
> \r\n
> 1\r\n
> b\r\n
> 0003;x=y;z="a;\\"b"\r\n
> ody\r\n
> 0\r\n
> \r\n
= head 200
= data body
= end
= idle
