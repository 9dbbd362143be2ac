# It is refused before any of it is read
? announced 6
? more_than_64_bits 18446744073709551616
? far_more 99999999999999999999999999
: limit body_bytes_max 5
> HTTP/1.1 200 OK\r\n
> content-length: \?\r\n
> \r\n
> hello
= fault BodyTooLong
= over
