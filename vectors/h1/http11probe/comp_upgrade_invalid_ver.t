# COMP-UPGRADE-INVALID-VER: non-101 (426 preferred)
> GET / HTTP/1.1\r\n
> Host: a\r\n
> Connection: Upgrade\r\n
> Upgrade: websocket\r\n
> Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n
> Sec-WebSocket-Version: 99\r\n
> \r\n
< HTTP/1.1 200 OK\r\n
< content-type: text/plain\r\n
< content-length: 8\r\n
< \r\n
< GET / 0\n
