# RFC 9112 §3.2: two hosts, two readings
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Host: b\r\n
> \r\n
= fault HostRepeated blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
