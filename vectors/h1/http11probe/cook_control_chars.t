# COOK-CONTROL-CHARS: 400 (rejected) or 2xx without control chars
> GET /echo HTTP/1.1\r\n
> Host: a\r\n
> Cookie: foo=\x01\x02\x03\r\n
> \r\n
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
