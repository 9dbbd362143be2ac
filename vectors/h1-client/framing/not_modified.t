# RFC 9110 §15.4.5: the length is that of a 200
? length content-length: 5
? chunked transfer-encoding: chunked
? none x: y
> HTTP/1.1 304 Not Modified\r\n
> \?\r\n
> \r\n
= head 304
= end
= idle
