# RFC 9112 §3: three words
? empty_version GET /\x20
? four_words GET / a HTTP/1.1
# RFC 9112 §3: nothing stands before the method
? leading_space \x20GET / HTTP/1.1
# RFC 9112 §3: three words
? method_only GET
? no_target GET HTTP/1.1
# RFC 9112 §3: nothing stands behind the version
? trailing_space GET / HTTP/1.1\x20
# RFC 9112 §3: exactly one space
? two_spaces_before_target GET  / HTTP/1.1
? two_spaces_before_version GET /  HTTP/1.1
> \?\r\n
> Host: a\r\n
> \r\n
= fault RequestLineSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
