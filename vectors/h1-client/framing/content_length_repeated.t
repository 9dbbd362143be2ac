# RFC 9112 §6.3: the first for some, the last for others
? same 5
? other 6
> HTTP/1.1 200 OK\r\n
> content-length: 5\r\n
> Content-Length: \?\r\n
> \r\n
> hello
= fault ContentLengthSyntax
