# RFC 9110 §5.5
? nul a\x00b
? control a\x0bb
? delete a\x7f
> HTTP/1.1 200 OK\r\n
> x: \?\r\n
> content-length: 0\r\n
> \r\n
= fault FieldValueSyntax
