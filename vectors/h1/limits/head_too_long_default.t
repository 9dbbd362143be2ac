# The default, as a client meets it
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: \*33000{x}\r\n
> \r\n
= fault HeadTooLong blame=peer
< HTTP/1.1 431 Request Header Fields Too Large\r\n...
= close
