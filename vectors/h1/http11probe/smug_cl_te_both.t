# SMUG-CL-TE-BOTH: 400 or 2xx
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 25\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> D\r\n
> hello-bananas\r\n
> 0\r\n
> \r\n
= fault AmbiguousLength blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
