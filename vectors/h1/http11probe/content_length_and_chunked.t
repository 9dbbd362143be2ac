# SMUG-CLTE-CONN-CLOSE: 400, or 2xx + close
? smug_clte_conn_close 5\r\n
# SMUG-CLTE-SMUGGLED-GET: 400, or close (no extra response)
? smug_clte_smuggled_get 32\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: \?
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
