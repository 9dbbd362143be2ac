# RFC9112-5.1-OBS-FOLD: 400
> GET / HTTP/1.1\r\n
> Host: a\r\n
> X-Test: value\r\n
>  continued\r\n
> \r\n
= fault LineFolding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
