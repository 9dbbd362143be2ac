> HTTP/1.1 200 OK\r\n
> x: \*65536{a}
= fault HeadTooLong
