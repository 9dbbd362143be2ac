# RFC 9112 §2.2
? bare_cr_in_extension 3;a\rb\r\n
? bare_lf 3\n
# CVE-2025-22871 (Go)
? bare_lf_behind_extension 3;a\n
# RFC 9112 §2.2
? cr_cr 3\r\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> \?
> abc\r\n
> 0\r\n
> \r\n
> GET /smuggled HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
