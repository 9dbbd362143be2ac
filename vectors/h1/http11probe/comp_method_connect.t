# COMP-METHOD-CONNECT: 400/405/501 or close
> CONNECT example.com:443 HTTP/1.1\r\n
> Host: example.com:443\r\n
> \r\n
= fault ConnectRefused blame=peer
< HTTP/1.1 501 Not Implemented\r\n...
= close linger
