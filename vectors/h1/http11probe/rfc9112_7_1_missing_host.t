# RFC9112-7.1-MISSING-HOST: 400
> GET / HTTP/1.1\r\n
> \r\n
= fault HostMissing blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
