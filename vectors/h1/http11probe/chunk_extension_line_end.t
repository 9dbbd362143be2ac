# SMUG-CHUNK-EXT-CR: 400 or close
? smug_chunk_ext_cr 5;a\rX\r\n
# SMUG-CHUNK-EXT-LF: 400 or 2xx
? smug_chunk_ext_lf 5;\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> \?
> hello\r\n
> 0\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
