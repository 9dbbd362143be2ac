# MAL-NON-ASCII-HEADER-NAME: 400 or close
? mal_non_ascii_header_name X-T\xC3\xABst:
# RFC9112-5-INVALID-HEADER-NAME: 400 or close
? rfc9112_5_invalid_header_name Bad[Name:
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \? value\r\n
> \r\n
= fault FieldNameSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
