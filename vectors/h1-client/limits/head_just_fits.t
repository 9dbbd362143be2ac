: limit head_bytes_max 40
> HTTP/1.1 200 OK\r\n
> content-length: 0 \r\n
> \r\n
= head 200
= end
