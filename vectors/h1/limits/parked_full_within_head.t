# A head that is not read on is not late; its time starts anew when it is
: app none
: limit write_queue_bytes_max 50
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET
= request 0 GET /a
= request 1 GET /b
= deadline +30000
~ 1 respond 200 \r\n\*20{b}
= reading no
= deadline none
@ +50000
~ 0 respond 200 \r\na
= reading yes
= deadline +30000
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nbbbbbbbbbbbbbbbbbbbb
@ +30000
= fault HeadTooSlow blame=peer
< HTTP/1.1 408 Request Timeout\r\n...
= close linger
