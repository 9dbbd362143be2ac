# RFC 9112 §7.1: CRLF behind the data
? longer b
? bare_lf \n
? other_cr \rx
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 1\r\n
> a\?\r\n
= head 200
= data a
= fault ChunkEnd
