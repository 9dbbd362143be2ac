# RFC 9110 §10.1.1: an expectation that cannot be met
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Expect: 200-ok\r\n
> Content-Length: 2\r\n
> \r\n
= fault ExpectationUnknown blame=peer
< HTTP/1.1 417 Expectation Failed\r\n...
= close linger
