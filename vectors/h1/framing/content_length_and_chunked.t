# RFC 9112 §6.1: the oldest way to smuggle
? four 4\r\n
# RFC 9112 §6.1: a length of zero is a length
? zero 0\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: \?
> Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault AmbiguousLength blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
