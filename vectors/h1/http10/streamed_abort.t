# A body without a length can only be cut by a reset
: app none
> GET /a HTTP/1.0\r\n
> \r\n
~ 0 start 200 \r\n
~ 0 data ab
~ 0 abort
= request 0 GET /a
< HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab
= close abort
