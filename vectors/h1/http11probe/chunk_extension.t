# SMUG-CHUNK-EXT-CTRL: 400 or close
? smug_chunk_ext_ctrl 5;\x00ext\r\n
# SMUG-CHUNK-EXT-INVALID-TOKEN: 400 or close
? smug_chunk_ext_invalid_token 5;bad[=x\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> \?
> hello\r\n
> 0\r\n
> \r\n
= fault ChunkExtension blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
