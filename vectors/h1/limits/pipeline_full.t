# Reading stops until one is answered
: app none
: limit pipeline_max 2
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /c HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 0 GET /a
= request 1 GET /b
= reading no
= deadline none
~ 1 respond 200 \r\nb
= reading no
~ 0 respond 200 \r\na
= request 2 GET /c
= reading yes
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nb
