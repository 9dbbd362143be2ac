# COOK-NUL: 400 (rejected) or 2xx without NUL
> GET /echo HTTP/1.1\r\n
> Host: a\r\n
> Cookie: foo=\x00bar\r\n
> \r\n
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
