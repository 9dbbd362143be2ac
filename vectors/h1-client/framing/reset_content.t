# RFC 9110 §15.3.6: it has none, and says so as any other
> HTTP/1.1 205 Reset Content\r\n
> content-length: 0\r\n
> \r\n
= head 205
= end
= idle
