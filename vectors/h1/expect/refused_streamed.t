# …when it is streamed as well, and 100 is not sent behind a final status
: app none
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Expect: 100-continue\r\n
> Content-Length: 2\r\n
> \r\n
~ 0 start 200 \r\n
~ 0 want all
= request 0 POST /
< HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n
~ 0 data a
~ 0 end
< 1\r\na\r\n0\r\n\r\n
= close linger
