# RFC 9112 §7.1.1
? bare ;
? no_name ;=b
? no_value ;a=
? control ;a\x01
? open_quote ;a="b
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> 1\?\r\n
> a\r\n
= head 200
= fault ChunkExtension
