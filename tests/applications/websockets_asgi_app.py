"""WebSockets of every kind with ASGI: echo, flood; and how they have ended."""

# pyright: basic

import json

ends = []


async def app(scope, receive, send):
    if scope["type"] == "http":
        body = b"x" * 3_000_000 if scope["path"] == "/large" else json.dumps(ends).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        return await send({"type": "http.response.body", "body": body})
    await receive()
    await send({"type": "websocket.accept"})
    if scope["path"] == "/about":
        tls = scope["extensions"]["tls"]
        name = {0x0303: "TLSv1.2", 0x0304: "TLSv1.3"}[tls["tls_version"]]
        seen = json.dumps([scope["scheme"], scope["http_version"], name, "localhost"])
        return await send({"type": "websocket.send", "text": seen})
    if scope["path"] == "/flood":
        for _n in range(2000):
            await send({"type": "websocket.send", "text": "x" * 1000})
        return
    while (message := await receive())["type"] == "websocket.receive":
        await send({**message, "type": "websocket.send"})
    ends.append(message["code"])
