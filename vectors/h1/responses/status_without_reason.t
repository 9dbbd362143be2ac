# RFC 9112 §4: the phrase may be empty, the space before it may not
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 299 \r\n
= request 0 GET /a
< HTTP/1.1 299 \r\ncontent-length: 0\r\n\r\n
