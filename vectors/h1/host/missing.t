# RFC 9112 §3.2
> GET / HTTP/1.1\r\n
> Accept: */*\r\n
> \r\n
= fault HostMissing blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
