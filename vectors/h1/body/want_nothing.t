# A wish for nothing changes nothing
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 1\r\n
> \r\n
> a
~ 0 want 0
= request 0 POST /
= reading no
= deadline none
