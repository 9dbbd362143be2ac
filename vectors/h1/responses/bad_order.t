# Content before the head, and the end before the beginning; nothing was sent: 500
? data data a
? end end
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 \?
= request 0 GET /a
= app-fault 0 ResponseOrder
< HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 22\r\n\r\ninternal server error\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
