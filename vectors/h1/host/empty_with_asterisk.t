# RFC 9110 §7.2: empty where the target has no authority
> OPTIONS * HTTP/1.1\r\n
> Host:\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nOPTIONS * 0\n
