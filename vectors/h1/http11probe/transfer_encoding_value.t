# SMUG-CHUNKED-WITH-PARAMS: 400 or 2xx
? smug_chunked_with_params chunked;ext=val\r\n
# SMUG-TE-EMPTY-VALUE: 400 or close
? smug_te_empty_value \r\n
# SMUG-TE-IDENTITY: 400/501 or close
? smug_te_identity identity\r\n
# SMUG-TE-TRAILING-COMMA: 400 or 2xx
? smug_te_trailing_comma chunked,\r\n
# SMUG-TE-XCHUNKED: 400/501 or close
? smug_te_xchunked xchunked\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: \?
> Content-Length: 5\r\n
> \r\n
> hello
= fault TransferEncoding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
