# RFC 9110 §15.2
> HTTP/1.1 100 Continue\r\n
> \r\n
> HTTP/1.1 103 Early Hints\r\n
> link: </a>\r\n
> \r\n
= interim 100
= interim 103
> HTTP/1.1 200 OK\r\n
> content-length: 2\r\n
> \r\n
> ok
= head 200
= data ok
= end
= idle
