# RFC 9112 §9.3.2: in parallel only if all of them are safe
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> OPTIONS /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> DELETE /c HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /d HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 0 GET /a
= request 1 OPTIONS /b
= reading no
~ 0 respond 200 \r\na
= reading no
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
~ 1 respond 200 \r\nb
= request 2 DELETE /c
= reading no
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nb
~ 2 respond 200 \r\nc
= request 3 GET /d
= reading yes
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nc
~ 3 respond 200 \r\nd
= reading yes
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nd
