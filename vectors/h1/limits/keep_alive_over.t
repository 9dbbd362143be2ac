# An idle connection closes silently
> GET /a HTTP/1.1\r\n
> Host: a\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 9\r\n\r\nGET /a 0\n
@ +74999
= deadline +1
@ +1
= close clean
