# RFC 9112 §7.1: hexadecimal digits
? letters zz
? empty
? minus -1
? plus +1
? prefix 0x1
? space_before \x201
? space_behind 1\x20
? overflow 10000000000000000
> HTTP/1.1 200 OK\r\n
> transfer-encoding: chunked\r\n
> \r\n
> \?\r\n
> a\r\n
= head 200
= fault ChunkSize
= over
