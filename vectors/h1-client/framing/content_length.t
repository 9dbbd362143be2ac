# RFC 9112 §6.3
> HTTP/1.1 200 OK\r\n
> content-length: 5\r\n
> \r\n
> hello
= head 200
= data hello
= end
= idle
