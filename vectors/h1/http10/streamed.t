# RFC 9112 §6.3 rule 8: the end of the connection ends the body
: app none
> GET /a HTTP/1.0\r\n
> \r\n
~ 0 start 200 \r\n
~ 0 data ab
~ 0 data
~ 0 data c
~ 0 end x: y\r\n\r\n
= request 0 GET /a
< HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nabc
= close clean
