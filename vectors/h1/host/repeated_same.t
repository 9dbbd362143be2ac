# RFC 9112 §3.2: any request with more than one Host line
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Accept: */*\r\n
> host: a\r\n
> \r\n
= fault HostRepeated blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
