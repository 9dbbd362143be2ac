# RFC 9112 §2.3: the name is case-sensitive
? lower_case http/1.1
# RFC 9112 §2.3
? other_protocol ICAP/1.1
# RFC 9112 §2.3: one digit each
? two_digits HTTP/1.10
# RFC 9112 §2.3: a dot
? with_comma HTTP/1,1
# RFC 9112 §2.3: one digit each
? without_minor HTTP/1
> GET / \?\r\n
> Host: a\r\n
> \r\n
= fault VersionSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
