# RFC 9110 §15, §15.2: a final status with inform, an informational one without, 101 with nothing to switch to,
# a class that does not exist, and 0, which ended a worker of granian; nothing was sent: 500
? inform inform 200
? informational respond 100
? started start 103
? switching inform 101
? too_large respond 600
? zero respond 0
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 \? \r\n
= request 0 GET /a
= app-fault 0 ResponseStatus
< HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 22\r\n\r\ninternal server error\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
