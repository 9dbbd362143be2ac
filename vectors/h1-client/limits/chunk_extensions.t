: limit chunk_extension_bytes_max 4
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 1;ab\r\n
> x\r\n
> 1;ab\r\n
= head 200
= data x
= fault ChunkExtension
