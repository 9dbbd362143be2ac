# RFC 9110 §5.5: control bytes
? bell a\x07b
? del a\x7fb
# RFC 9110 §5.5: control bytes; terminals that show logs obey this one
? escape \x1b[31m
# RFC 9110 §5.5
? nul a\x00b
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: \?\r\n
> \r\n
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
