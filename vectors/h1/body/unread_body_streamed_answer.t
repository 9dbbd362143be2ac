# The head left before it was known that the rest is too long: closed without notice
: app none
: limit discard_bytes_max 4
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> \r\n
~ 0 start 200 content-length: 2\r\n\r\n
~ 0 data ok
~ 0 end
= request 0 POST /
= close linger
< HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
