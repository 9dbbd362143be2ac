# Earlier answers leave before the cut
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /c HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 1 abort
= request 0 GET /a
= request 1 GET /b
= request 2 GET /c
= reading no
~ 2 respond 200 \r\nc
~ 0 respond 200 \r\na
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
= close abort
