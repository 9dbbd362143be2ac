# COMP-UPGRADE-UNKNOWN: !101
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Connection: Upgrade\r\n
> Upgrade: totally-made-up/1.0\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 8\r\n
< \r\n
< GET / 0\n
