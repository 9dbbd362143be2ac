# A browser's WebSocket handshake, answered like any GET until somebody takes it over
> GET /chat HTTP/1.1\r\n
> Host: localhost:8000\r\n
> Upgrade: websocket\r\n
> Connection: keep-alive, Upgrade\r\n
> Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n
> Sec-WebSocket-Version: 13\r\n
> Origin: http://localhost:8000\r\n
> \r\n
< HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 12\r\n\r\nGET /chat 0\n
