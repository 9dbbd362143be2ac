# RFC 9112 §2.2: white space between status line and first field
> HTTP/1.1 200 OK\r\n
> \x20content-length: 5\r\n
> \r\n
= fault LineFolding
