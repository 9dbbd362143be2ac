# SMUG-TECL-PIPELINE: 400 or close preferred; 2xx acceptable
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> Content-Length: 30\r\n
> \r\n
> 0\r\n
> \r\n
= fault AmbiguousLength blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
