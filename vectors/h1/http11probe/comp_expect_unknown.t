# COMP-EXPECT-UNKNOWN: 417 or 2xx
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Expect: 200-ok\r\n
> \r\n
= fault ExpectationUnknown blame=peer
< HTTP/1.1 417 Expectation Failed\r\n...
= close linger
