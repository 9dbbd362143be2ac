# MAL-WHITESPACE-ONLY-LINE: 400/close/timeout
>  \r\n
> \r\n
= fault RequestLineSyntax blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
