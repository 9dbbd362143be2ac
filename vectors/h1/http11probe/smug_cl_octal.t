# SMUG-CL-OCTAL: 400 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 0o5\r\n
> \r\n
> hello
= fault ContentLengthSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
