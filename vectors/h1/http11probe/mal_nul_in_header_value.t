# MAL-NUL-IN-HEADER-VALUE: 400 or close
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X-Test: val\x00ue\r\n
> \r\n
= fault FieldValueSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
