# COMP-DUPLICATE-HOST-SAME: 400
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Host: a\r\n
> \r\n
= fault HostRepeated blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
