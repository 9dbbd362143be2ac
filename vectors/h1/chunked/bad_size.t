# RFC 9112 §7.1: at least one digit
? empty
# RFC 9112 §7.1
? leading_space \x203
? minus -3
? not_hexadecimal g
? nul 3\x00
# RFC 9112 §7.1: recipients must guard against overflow
? overflow ffffffffffffffff0
# RFC 9112 §7.1
? plus +3
# RFC 9112 §7.1: digits and nothing else
? prefix 0x3
# RFC 9112 §7.1.1: white space belongs to an extension, and there is none
? trailing_space 3\x20
# RFC 9112 §7.1
? underscore 1_0
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> \?\r\n
> abc\r\n
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault ChunkSize blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
