# Requests behind a body without a length are not answered
: app none
> GET /a HTTP/1.0\r\n
> Connection: keep-alive\r\n
> \r\n
> GET /a HTTP/1.0\r\n
> Connection: keep-alive\r\n
> \r\n
~ 0 start 200 \r\n
~ 1 respond 200 \r\nb
~ 0 data a
~ 0 end
= request 0 GET /a
= request 1 GET /a
< HTTP/1.1 200 OK\r\nconnection: close\r\n\r\na
= close linger
