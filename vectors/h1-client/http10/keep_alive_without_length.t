# RFC 9112 §6.3: the body ends with the connection all the same
> HTTP/1.0 200 OK\r\n
> connection: keep-alive\r\n
> \r\n
> ab
! finish
= head 200
= data ab
= end
= over
