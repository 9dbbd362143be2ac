# SMUG-TE-SP-BEFORE-COLON: 400 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding : chunked\r\n
> Content-Length: 5\r\n
> \r\n
> hello
= fault FieldNameSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
