# RFC 9110 §5.3: a list may come in several lines
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> Connection: foo\r\n
> Connection: close\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 9\r\n\r\nGET /a 0\n
= close clean
