# RFC 9110 §5.6.2: tchar
> !#$%&'*+-.^_`|~aZ9 / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 23\r\n\r\n!#$%&'*+-.^_`|~aZ9 / 0\n
