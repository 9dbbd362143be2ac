# RFC 9112 §6.1: the final response for some, its body for others
? length content-length: 19
? chunked transfer-encoding: chunked
> HTTP/1.1 103 Early Hints\r\n
> \?\r\n
> \r\n
> HTTP/1.1 200 OK\r\n
> content-length: 0\r\n
> \r\n
= fault ContentForbidden
= over
