# COOK-CONTROL-CHARS: 400 (rejected) or 2xx without control chars
? cook_control_chars foo=\x01\x02\x03\r\n
# COOK-NUL: 400 (rejected) or 2xx without NUL
? cook_nul foo=\x00bar\r\n
> GET /echo HTTP/1.1\r\n
> Host: a\r\n
> Cookie: \?
> \r\n
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
