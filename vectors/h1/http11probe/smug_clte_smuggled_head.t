# SMUG-CLTE-SMUGGLED-HEAD: 400, or close (no extra response)
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 33\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> \r\n
> HEAD / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault AmbiguousLength blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
