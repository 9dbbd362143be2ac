# The default, as a client meets it
> GET /\*8192{a} HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetTooLong blame=peer
< HTTP/1.1 414 URI Too Long\r\n...
= close linger
