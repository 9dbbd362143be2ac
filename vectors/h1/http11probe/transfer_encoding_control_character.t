# SMUG-TE-FORMFEED: 400 or close
? smug_te_formfeed \x0Cchunked\r\n
# SMUG-TE-NULL: 400 or close
? smug_te_null chunked\x00\r\n
# SMUG-TE-VTAB: 400 or close
? smug_te_vtab \x0Bchunked\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: \?
> Content-Length: 5\r\n
> \r\n
> hello
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
