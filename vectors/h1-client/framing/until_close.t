# RFC 9112 §6.3: no length, so the end of the connection
> HTTP/1.1 200 OK\r\n
> \r\n
> hello
= head 200
= data hello
! finish
= end
= over
