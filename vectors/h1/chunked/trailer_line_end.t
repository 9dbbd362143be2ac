# RFC 9112 §2.2
? bare_cr a\rb\r\n
# RFC 9112 §2.2 (eventlet CVE-2025-58068)
? bare_lf a\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> X: \?
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
