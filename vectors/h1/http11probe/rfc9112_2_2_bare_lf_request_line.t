# RFC9112-2.2-BARE-LF-REQUEST-LINE: 400 or close (pass), 2xx (warn)
> GET / HTTP/1.1\n
> Host: a\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
