# COMP-POST-CL-UNDERSEND: 400/close/timeout
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 10\r\n
> \r\n
> hello
= reading yes
