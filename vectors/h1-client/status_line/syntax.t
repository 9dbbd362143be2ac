# RFC 9112 §4: version, space, three digits, space
? other_protocol SSH-2.0-OpenSSH_9.6
? icy ICY 200 OK
? lower_case http/1.1 200 OK
? space_before \x20HTTP/1.1 200 OK
? tab HTTP/1.1\t200 OK
? two_spaces HTTP/1.1  200 OK
? two_digits HTTP/1.1 20 OK
? four_digits HTTP/1.1 2000 OK
? letters HTTP/1.1 2xx OK
? minus HTTP/1.1 -20 OK
? no_status HTTP/1.1
? no_minor HTTP/1 200 OK
? control_in_reason HTTP/1.1 200 a\x01b
? nul HTTP/1.1 200 \x00
? no_dot HTTP/11 200 OK
> \?\r\n
> content-length: 0\r\n
> \r\n
> HTTP/1.1 200 OK\r\n
> content-length: 0\r\n
> \r\n
= fault StatusLineSyntax
= over
