# RFC 9112 §9.3
> HTTP/1.0 200 OK\r\n
> content-length: 2\r\n
> \r\n
> ab
= head 200
= data ab
= end
= over
