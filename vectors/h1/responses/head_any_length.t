# RFC 9110 §8.6: a HEAD may be told a length without the bytes
: app none
> HEAD /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
~ 0 respond 200 content-length: 99\r\n\r\n
= request 0 HEAD /a
< HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= request 1 GET /b
