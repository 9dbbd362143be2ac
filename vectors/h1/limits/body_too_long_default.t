# The default, as a client meets it
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 16777217\r\n
> \r\n
= fault BodyTooLong blame=peer
< HTTP/1.1 413 Content Too Large\r\n...
= close linger
