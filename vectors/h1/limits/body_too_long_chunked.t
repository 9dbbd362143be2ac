# RFC 9110 §15.5.14: grown
: limit body_bytes_max 10
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 6\r\n
> abcdef\r\n
> 5\r\n
= fault BodyTooLong blame=peer
< HTTP/1.1 413 Content Too Large\r\n...
= close linger
