# SMUG-CHUNK-LF-TERM: 400 or 2xx
? smug_chunk_lf_term hello\n
# SMUG-CHUNK-SPILL: 400 or close
? smug_chunk_spill hello!!\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 5\r\n
> \?
> 0\r\n
> \r\n
= fault ChunkEnd blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
