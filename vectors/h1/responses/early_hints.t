# RFC 8297: informational answers before the final one
: app none
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 inform 103 link: </a>\r\n\r\n
~ 0 inform 103 link: </b>\r\n\r\n
~ 0 respond 200 \r\n
= request 0 GET /a
< HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </b>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
