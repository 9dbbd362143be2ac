# A slow handler does not eat into the patience for the next request
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 0 GET /a
= deadline none
@ +100000
~ 0 respond 200 \r\na
= deadline +75000
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na
