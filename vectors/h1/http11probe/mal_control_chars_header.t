# MAL-CONTROL-CHARS-HEADER: 400 or close
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X-Test: abc\x07\x08\x0Bdef\r\n
> \r\n
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
