# RFC 9110 §8.6: more announced than there is, less, two numbers, no number; nothing was sent: 500
? long 3
? short 1
? repeated 2\r\ncontent-length: 3
? syntax +2
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 content-length: \?\r\n\r\nab
= request 0 GET /a
= app-fault 0 ResponseLength
< HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 22\r\n\r\ninternal server error\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
