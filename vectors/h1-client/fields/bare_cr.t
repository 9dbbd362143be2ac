# RFC 9112 §2.2: a CR that no LF follows is a line end for some
> HTTP/1.1 200 OK\r\n
> x: a\rcontent-length: 5\r\n
> content-length: 0\r\n
> \r\n
= fault LineEnding
