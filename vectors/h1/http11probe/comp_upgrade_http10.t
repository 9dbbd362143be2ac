# COMP-UPGRADE-HTTP10: !101
> GET / HTTP/1.0\r\n
> Host: a\r\n
> Connection: Upgrade\r\n
> Upgrade: websocket\r\n
> Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n
> Sec-WebSocket-Version: 13\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< connection: close\r\n
< content-length: 8\r\n
< \r\n
< GET / 0\n
= close clean
