# …known before their end is seen
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> X: \*9000{x}
= fault TrailersTooLong blame=peer
< HTTP/1.1 431 Request Header Fields Too Large\r\n...
= close linger
