# SMUG-OPTIONS-TE-OBS-FOLD: 400, or 2xx + close
> OPTIONS / HTTP/1.1\r\n
> Host: a\r\n
> Transfer-Encoding:\r\n
>  chunked\r\n
> Content-Length: 5\r\n
> \r\n
> helloGET / HTTP/1.1\r\n
> Host: a\r\n
> \r\n
= fault TransferEncoding blame=peer
< HTTP/1.1 400 Bad Request\r\n...
= close linger
