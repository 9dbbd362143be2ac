# RFC 9110 §2.5 would have it taken for 1.1; nobody sends it but to test
? http_12 HTTP/1.2\r\n
# RFC 9110 §15.6.6
? http_30 HTTP/3.0\r\n
> GET / \?
> Host: a\r\n
> \r\n
= fault VersionUnsupported blame=peer
< HTTP/1.1 505 HTTP Version Not Supported\r\n...
= close linger
