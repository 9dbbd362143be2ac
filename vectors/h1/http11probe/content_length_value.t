# MAL-CL-EMPTY: 400 or close
? mal_cl_empty \r\n
# MAL-CL-OVERFLOW: 400 or close
? mal_cl_overflow 99999999999999999999\r\n
# RFC9112-6.1-CL-NON-NUMERIC: 400 or close
? rfc9112_6_1_cl_non_numeric abc\r\n
# SMUG-CL-NEGATIVE: 400 or close
? smug_cl_negative -1\r\n
# SMUG-CL-NEGATIVE-ZERO: 400 or close
? smug_cl_negative_zero -0\r\n
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: \?
> \r\n
= fault ContentLengthSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
