# RFC 9110 §15.2: not to HTTP/1.0
: app none
> GET /a HTTP/1.0\r\n
> \r\n
~ 0 inform 103 link: a\r\n\r\n
~ 0 respond 200 \r\n
= request 0 GET /a
< HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n
= close clean
