# The head has left: the connection closes without notice
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
= close linger
