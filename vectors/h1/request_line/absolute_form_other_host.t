# RFC 9112 §3.2.2: the authority of the target wins, Host is ignored
> GET http://example.com/ HTTP/1.1\r\n
> Host: other.example\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
