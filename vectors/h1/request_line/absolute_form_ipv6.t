# RFC 3986 §3.2.2: an address in brackets
> GET http://[::1]:8000/a HTTP/1.1\r\n
> Host: [::1]:8000\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /a 0\n
