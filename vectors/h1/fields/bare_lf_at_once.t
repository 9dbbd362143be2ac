# A bare LF is refused when it comes, not when the head is over
> GET / HTTP/1.1\r\n
> Host: a\n
> X
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
