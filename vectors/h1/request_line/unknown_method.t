# RFC 9110 §9.1: methods are an open set; routes decide
> BREW /pot HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nBREW /pot 0\n
