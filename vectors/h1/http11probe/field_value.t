# MAL-CONTROL-CHARS-HEADER: 400 or close
? mal_control_chars_header abc\x07\x08\x0Bdef\r\n
# MAL-NUL-IN-HEADER-VALUE: 400 or close
? mal_nul_in_header_value val\x00ue\r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X-Test: \?
> \r\n
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
