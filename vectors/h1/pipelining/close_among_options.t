# RFC 9110 §7.6.1: a list, whose members have no case
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> Connection: foo,\tCLOSE ,bar\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 9\r\n\r\nGET /a 0\n
= close clean
