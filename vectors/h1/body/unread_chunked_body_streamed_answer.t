# The head leaves before the rest of the body is read
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
~ 0 start 200 content-length: 2\r\n\r\n
~ 0 data o
= request 0 POST /
< HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\no
~ 0 data k
~ 0 end
= close linger
< k
