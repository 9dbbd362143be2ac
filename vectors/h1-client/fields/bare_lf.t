# RFC 9112 §2.2
? field x: a\n
? blank_line x: a\r\n\n
> HTTP/1.1 200 OK\r\n
> content-length: 0\r\n
> \?
> \r\n
= fault LineEnding
