# SMUG-CLTE-CONN-CLOSE: 400, or 2xx + close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 0\r\n
> \r\n
> GET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault AmbiguousLength blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
