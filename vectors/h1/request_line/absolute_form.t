# RFC 9112 §3.2.2: a server must accept the absolute form
> GET http://example.com:8080/a?b HTTP/1.1\r\n
> Host: example.com\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n\r\nGET /a?b 0\n
