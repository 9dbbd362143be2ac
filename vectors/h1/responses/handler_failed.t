# The handler raised before it answered; nothing was sent: 500
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 fail HandlerFailed
= request 0 GET /a
= app-fault 0 HandlerFailed
< HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 22\r\n\r\ninternal server error\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
