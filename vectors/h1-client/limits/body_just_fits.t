: limit body_bytes_max 5
> HTTP/1.1 200 OK\r\n
> content-length: 5\r\n
> \r\n
> hello
= head 200
= data hello
= end
= idle
