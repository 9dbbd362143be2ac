# The peer has closed its side; what it asked for still leaves
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
! finish
= request 0 GET /a
= request 1 GET /b
~ 0 respond 200 \r\na
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
~ 1 respond 200 \r\nb
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nb
= close clean
