# RFC9112-2.2-BARE-LF-HEADER: 400 or close (pass), 2xx (warn)
> GET / HTTP/1.1\r\n
> Host: a\n
> X-Test: value\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
