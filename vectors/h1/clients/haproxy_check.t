# HAProxy's health check
> OPTIONS / HTTP/1.0\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 12\r\n\r\nOPTIONS / 0\n
= close clean
