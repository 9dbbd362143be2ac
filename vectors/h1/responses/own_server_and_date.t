# The application's own lines take the place of the server's
: app none
: server citius
: date z
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 :type: a/b\r\nServer: x\r\nDate: y\r\nContent-Type: c/d\r\n\r\nok
= request 0 GET /a
< HTTP/1.1 200 OK\r\nserver: x\r\ndate: y\r\ncontent-type: c/d\r\ncontent-length: 2\r\n\r\nok
