# RFC 9110 §15.3.5
? nothing x: y
? length_zero content-length: 0
> HTTP/1.1 204 No Content\r\n
> \?\r\n
> \r\n
= head 204
= end
= idle
