: limit fields_max 2
> HTTP/1.1 200 OK\r\n
> a: b\r\n
> a: b\r\n
> content-length: 0\r\n
> \r\n
= fault TooManyFields
