# A final answer makes 100 pointless
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> OPTIONS / HTTP/1.1\r\n
> Host: a\r\n
> Expect: 100-continue\r\n
> Content-Length: 2\r\n
> \r\n
~ 1 want all
~ 1 respond 200 \r\nb
= request 0 GET /a
= request 1 OPTIONS /
~ 0 respond 200 \r\na
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\nb
= close linger
