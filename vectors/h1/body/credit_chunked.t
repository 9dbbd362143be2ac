# Credit counts body bytes, not their coding; chunk ends cost nothing
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 4\r\n
> abcd\r\n
> 2\r\n
> ef\r\n
> 0\r\n
> \r\n
= request 0 POST /
= reading no
~ 0 want 3
= data 0 abc
= reading no
~ 0 want 3
= data 0 def
= end 0
= reading yes
