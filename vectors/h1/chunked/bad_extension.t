# RFC 9112 §7.1.1: an extension has a name
? bare_semicolon ;
# RFC 9112 §7.1.1
? control ;a\x01
? no_name ;=b
# RFC 9112 §7.1.1: an equals sign has a value
? no_value ;a=
# RFC 9112 §7.1.1
? nul ;a="\x00"
? open_quote ;a="b
? trailing_space ;a\x20
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 3\?\r\n
> abc\r\n
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault ChunkExtension blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
