# Host may be any line
> GET / HTTP/1.1\r\n
> Accept: */*\r\n
> hOsT: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\nGET / 0\n
