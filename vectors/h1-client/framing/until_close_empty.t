> HTTP/1.1 200 OK\r\n
> \r\n
! finish
= head 200
= end
= over
