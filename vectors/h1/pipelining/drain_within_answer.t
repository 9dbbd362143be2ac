# The head has left without notice: the next request may be under way, is answered, and gets the notice
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 200 content-length: 2\r\n\r\n
= request 0 GET /a
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n
! drain
~ 0 data ab
~ 0 end
< ab
> POST /b HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 0\r\n
> \r\n
= request 1 POST /b
~ 1 respond 200 \r\nb
< HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nb
= close linger
