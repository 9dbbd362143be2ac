# An application's close ends the connection; requests behind it are not answered
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 connection: close\r\n\r\na
= request 0 GET /a
= request 1 GET /b
< HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na
= close linger
~ 1 respond 200 \r\nb
= close linger
