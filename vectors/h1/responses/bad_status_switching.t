# RFC 9110 §15.2.2: nothing to switch to; nothing was sent: 500
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 inform 101 \r\n
= request 0 GET /a
= app-fault 0 ResponseStatus
< HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain\r\ncontent-length: 22\r\n\r\ninternal server error\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
