: limit head_bytes_max 60
> HTTP/1.1 200 OK\r\n
> x: \*60{a}\r\n
> \r\n
= fault HeadTooLong
= over
