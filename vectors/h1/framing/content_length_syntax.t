# RFC 9112 §6.3: a run of digits that fits, or nothing
? decimal_point 5.0
? exponent 5e1
? hexadecimal 0x5
? letter 5a
? list 5, 5
? list_no_space 5,5
? minus -5
? overflow 18446744073709551616
? overflow_far 9999999999999999999999999999999999999999
? plus +5
? quoted "5"
? semicolon 5;q=1
? space_inside 5 5
? superscript \xb2
? underscore 1_0
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: \?\r\n
> \r\n
> 12345GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault ContentLengthSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
