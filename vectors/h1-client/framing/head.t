# RFC 9110 §9.3.2: the length is that of a response to GET
? length content-length: 5
? chunked transfer-encoding: chunked
? none x: y
~ head
> HTTP/1.1 200 OK\r\n
> \?\r\n
> \r\n
= head 200
= end
= idle
