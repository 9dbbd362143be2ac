# A CR that is not followed by LF
> \rGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
