# RFC 9112 §9.6: nothing behind Connection: close is read
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> Connection: close\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 9\r\n\r\nGET /a 0\n
= close
