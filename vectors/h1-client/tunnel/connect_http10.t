# Proxies of HTTP/1.0 tunnel, too
~ connect
> HTTP/1.0 200 OK\r\n
> \r\n
> \x16
= tunnel 200
= left \x16
