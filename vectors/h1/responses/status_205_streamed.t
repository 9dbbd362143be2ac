# RFC 9110 §15.3.6: no content
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 start 205 \r\n
~ 0 data abc
~ 0 end
= request 0 GET /a
< HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
