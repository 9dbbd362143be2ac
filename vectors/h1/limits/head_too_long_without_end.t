# …and refused before its end is seen
: limit head_bytes_max 100
: limit target_bytes_max 50
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: \*100{x}
= fault HeadTooLong blame=peer
< HTTP/1.1 431 Request Header Fields Too Large\r\n...
= close linger
