# A CRLF is no request
> \r\n
! finish
= close clean
