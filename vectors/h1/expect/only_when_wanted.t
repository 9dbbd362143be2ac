# A client that waits is not told to send what nobody wants
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Expect: 100-continue\r\n
> Content-Length: 2\r\n
> \r\n
= request 0 POST /
= reading no
= deadline none
~ 0 want 1
< HTTP/1.1 100 Continue\r\n\r\n
= deadline +10000
~ 0 want 1
= deadline +10000
