# MAL-INCOMPLETE-REQUEST: 400/close/timeout
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X-Test: value
= reading yes
