# RFC 6585 §5
: limit trailer_bytes_max 20
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> X: xxxxxxxxxxxxxxxxxxxx\r\n
> \r\n
= fault TrailersTooLong blame=peer
< HTTP/1.1 431 Request Header Fields Too Large\r\n...
= close linger
