# RFC 9112 §9.3
> HTTP/1.1 200 OK\r\n
> content-length: 0\r\n
> \r\n
! finish
= head 200
= end
= over
