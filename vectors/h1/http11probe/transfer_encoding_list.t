# SMUG-TE-DOUBLE-CHUNKED: 400 or 2xx
? smug_te_double_chunked chunked,
# SMUG-TE-LEADING-COMMA: 400 or 2xx
? smug_te_leading_comma ,
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: \? chunked\r\n
> Content-Length: 5\r\n
> \r\n
> hello
= fault TransferEncoding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
