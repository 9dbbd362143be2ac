# RFC 9112 §9.3
~ content
> HTTP/1.1 200 OK\r\n
> content-length: 1\r\n
> \r\n
> a
= head 200
= data a
= end
= idle
~ head
> HTTP/1.1 404 Not Found\r\n
> content-length: 1\r\n
> \r\n
= head 404
= end
= idle
~ content
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 1\r\n
> b\r\n
> 0\r\n
> \r\n
= head 200
= data b
= end
= idle
