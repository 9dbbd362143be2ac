# The 500 for a later request waits like any answer
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 1 fail HandlerFailed
= request 0 GET /a
= request 1 GET /b
= app-fault 1 HandlerFailed
~ 0 respond 200 \r\na
< HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 22\r\n\r\ninternal server error\n
= reading yes
