# A rest that is short enough is dropped behind a streamed response, however it is cut; the next request is answered
: app none
: limit discard_bytes_max 5
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
~ 0 start 200 \r\n
~ 0 data o
~ 0 data k
~ 0 end
= request 0 POST /
< HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n
< 1\r\no\r\n
< 1\r\nk\r\n
< 0\r\n\r\n
> abcdeGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /
