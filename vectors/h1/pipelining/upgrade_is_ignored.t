# RFC 9110 §7.8: an upgrade may be ignored
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> Connection: Upgrade, HTTP2-Settings\r\n
> Upgrade: h2c\r\n
> HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n
> \r\n
> GET /b HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /a 0\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /b 0\n
