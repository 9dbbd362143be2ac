# RFC 9110 §15.5.15
: limit target_bytes_max 10
> GET /aaaaaaaaaa HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TargetTooLong blame=peer
< HTTP/1.1 414 URI Too Long\r\n...
= close linger
