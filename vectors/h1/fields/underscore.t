# Names with an underscore are valid here; WSGI has to tell them apart
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X_A: b\r\n
> X-A: c\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
