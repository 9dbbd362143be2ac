# RFC 9110 §9.3.6: this is no proxy
> CONNECT a:443 HTTP/1.1\r\n
> Host: a:443\r\n
> \r\n
= fault ConnectRefused blame=peer
< HTTP/1.1 501 Not Implemented\r\n...
= close linger
