# Reading also stops when too much waits for a slow one to be answered first
: app none
: limit write_queue_bytes_max 50
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 1 respond 200 \r\n\*20{b}
= request 0 GET /a
= request 1 GET /b
= reading no
> GET /c HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= reading no
~ 0 respond 200 \r\na
= request 2 GET /c
= reading yes
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\nbbbbbbbbbbbbbbbbbbbb
