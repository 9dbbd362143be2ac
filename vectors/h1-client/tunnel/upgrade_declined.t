# RFC 9110 §7.8
~ upgrade
> HTTP/1.1 200 OK\r\n
> content-length: 0\r\n
> \r\n
= head 200
= end
= idle
