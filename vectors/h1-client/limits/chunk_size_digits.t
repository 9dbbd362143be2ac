: limit chunk_size_digits_max 4
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 00001\r\n
= head 200
= fault ChunkSize
