# Only a body that is wanted can be late
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 10\r\n
> \r\n
= request 0 POST /
= deadline none
@ +100000
~ 0 want 5
= deadline +10000
> abcde
= data 0 abcde
= deadline none
