# RFC 9110 §9.3.6: a length or coding of a 2xx means nothing
? nothing x: y
? length content-length: 5
? chunked transfer-encoding: chunked
~ connect
> HTTP/1.1 200 OK\r\n
> \?\r\n
> \r\n
> \x16\x03
= tunnel 200
= left \x16\x03
