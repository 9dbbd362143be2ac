# RFC 9110 §6.6.1, §10.2.4
: app none
: server citius
: date Sun, 06 Nov 1994 08:49:37 GMT
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 :type: text/html\r\n\r\nok
= request 0 GET /a
< HTTP/1.1 200 OK\r\nserver: citius\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nok
