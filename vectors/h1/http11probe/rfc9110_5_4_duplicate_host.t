# RFC9110-5.4-DUPLICATE-HOST: 400
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Host: other.example.com\r\n
> \r\n
= fault HostRepeated blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
