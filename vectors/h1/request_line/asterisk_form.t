# RFC 9112 §3.2.4: OPTIONS for the server as a whole
> OPTIONS * HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nOPTIONS * 0\n
