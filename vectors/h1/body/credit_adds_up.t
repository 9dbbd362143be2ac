# Wishes add up, and saturate
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 4\r\n
> \r\n
~ 0 want 1
~ 0 want 2
= request 0 POST /
= reading yes
> abcd
= data 0 abc
= reading no
~ 0 want all
~ 0 want all
= data 0 d
= end 0
