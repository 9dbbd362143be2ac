# RFC 9112 §5.2: a recipient may refuse it, and two readers unfold differently
? space \x20
? tab \t
> HTTP/1.1 200 OK\r\n
> x: a\r\n
> \?b\r\n
> content-length: 0\r\n
> \r\n
= fault LineFolding
