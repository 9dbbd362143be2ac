# …although the client asked for more
: app none
> GET /a HTTP/1.0\r\n
> Connection: keep-alive\r\n
> \r\n
~ 0 start 200 \r\n
~ 0 data ab
~ 0 end
= request 0 GET /a
< HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab
= close linger
