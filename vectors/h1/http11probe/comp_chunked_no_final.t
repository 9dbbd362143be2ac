# COMP-CHUNKED-NO-FINAL: 400/close/timeout
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding: chunked\r\n
> \r\n
> 5\r\n
> hello\r\n
= reading yes
