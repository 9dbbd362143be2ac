# RFC 9112 §2.2: a bare CR in a value
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: a\rb\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
