# RFC9112-3-CR-ONLY-LINE-ENDING: 400
> GET / HTTP/1.1\rHost: a\r\n
> \r\n
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
