# RFC 9110 §9.3.6: any other response is one
~ connect
> HTTP/1.1 407 Proxy Authentication Required\r\n
> content-length: 2\r\n
> \r\n
> no
= head 407
= data no
= end
= idle
