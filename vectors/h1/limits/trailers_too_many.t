# The same number as in a head
: limit fields_max 2
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> A: 1\r\n
> B: 2\r\n
> C: 3\r\n
> \r\n
= fault TooManyFields blame=peer
< HTTP/1.1 431 Request Header Fields Too Large\r\n...
= close linger
