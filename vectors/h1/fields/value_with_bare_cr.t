# RFC 9112 §2.2
? at_its_end a\r\r\n
# RFC 9112 §2.2: a bare CR in a value
? inside a\rb\r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X: \?
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
