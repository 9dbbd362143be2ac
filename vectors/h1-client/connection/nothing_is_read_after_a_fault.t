> HTTP/1.1 200 OK\r\n
> content-length: 1, 2\r\n
> \r\n
= fault ContentLengthSyntax
> HTTP/1.1 200 OK\r\n
> content-length: 0\r\n
> \r\n
! finish
= over
