# SMUG-DUPLICATE-CL-SMUGGLED-GET: 400, or close (no extra response)
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 4\r\n
> Content-Length: 31\r\n
> \r\n
> PINGGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault ContentLengthSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
