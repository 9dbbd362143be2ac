# RFC 9112 §3.2.2, scheme in capitals
> GET HTTPS://example.com/a HTTP/1.1\r\n
> Host: example.com\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /a 0\n
