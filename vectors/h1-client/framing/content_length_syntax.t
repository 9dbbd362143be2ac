# RFC 9112 §6.3: a run of digits, or nothing
? empty
? minus -1
? plus +5
? list 5, 5
? list_other 5, 6
? hexadecimal 0x5
? decimal_point 5.0
? underscore 1_0
? space_inside 5 5
? quoted "5"
> HTTP/1.1 200 OK\r\n
> content-length: \?\r\n
> \r\n
> hello
= fault ContentLengthSyntax
= over
