# SMUG-CL-INTERNAL-SPACE: 400 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 1 0\r\n
> \r\n
> hello12345
= fault ContentLengthSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
