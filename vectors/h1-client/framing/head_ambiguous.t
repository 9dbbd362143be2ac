# RFC 9112 §6.1
~ head
> HTTP/1.1 200 OK\r\n
> content-length: 5\r\n
> transfer-encoding: chunked\r\n
> \r\n
= fault AmbiguousLength
