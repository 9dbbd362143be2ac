# SMUG-BARE-CR-HEADER-VALUE: 400 or close
> POST / HTTP/1.1\r\n
> Host: a\r\n
> Content-Length: 5\r\n
> X-Test: val\rue\r\n
> \r\n
> hello
= fault LineEnding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
