# RFC 9110 §15.5.14: announced
: limit body_bytes_max 10
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 11\r\n
> \r\n
= fault BodyTooLong blame=peer
< HTTP/1.1 413 Content Too Large\r\n...
= close linger
