# SMUG-DUPLICATE-CL: 400 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> Content-Length: 10\r\n
> \r\n
> helloworld
= fault ContentLengthSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
