# A CRLF does not count as a head that has begun
> \r\n
@ +30000
= close clean
