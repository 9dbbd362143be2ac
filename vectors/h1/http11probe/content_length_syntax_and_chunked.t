# SMUG-CLTE-SMUGGLED-GET-CL-NON-NUMERIC: 400, or close (no extra response)
? smug_clte_smuggled_get_cl_non_numeric 32x\r\n
# SMUG-CLTE-SMUGGLED-GET-CL-PLUS: 400, or close (no extra response)
? smug_clte_smuggled_get_cl_plus +32\r\n
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
= fault ContentLengthSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
