# A limit of 0 is no limit
: limit head_read_ms 0
: limit keep_alive_ms 0
: limit body_read_ms 0
@ +1000000
= deadline none
> G
@ +1000000
= deadline none
> ET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= deadline none
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 1\r\n
> \r\n
= deadline none
