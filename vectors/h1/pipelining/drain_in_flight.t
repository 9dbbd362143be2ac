# What is in flight is answered, the last with close; nothing new is read
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
! drain
= request 0 GET /a
= request 1 GET /b
= reading no
~ 0 respond 200 \r\na
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
~ 1 respond 200 \r\nb
< HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nb
= close linger
