# An answer may run beside the body it answers
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 4\r\n
> \r\n
> ab
~ 0 want all
~ 0 start 200 content-length: 4\r\n\r\n
~ 0 data ab
= request 0 POST /
= data 0 ab
< HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab
> cd
~ 0 data cd
~ 0 end
= data 0 cd
= end 0
< cd
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /
