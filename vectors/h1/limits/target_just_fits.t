# A target of exactly the limit; RFC 9112 §3 asks for 8000
> GET /\*8191{a} HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8199\r\n\r\nGET /\*8191{a} 0\n
