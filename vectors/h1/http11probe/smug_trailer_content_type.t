# SMUG-TRAILER-CONTENT-TYPE: 400 or 2xx
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 5\r\n
> hello\r\n
> 0\r\n
> Content-Type: text/evil\r\n
> \r\n
= fault TrailerForbidden blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
