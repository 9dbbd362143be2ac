# SMUG-TE-TAB-BEFORE-VALUE: 400 or 2xx
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding:\tchunked\r\n
> Content-Length: 5\r\n
> \r\n
> hello
= fault AmbiguousLength blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
