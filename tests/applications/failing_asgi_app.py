"""An ASGI application that fails in every way."""

# pyright: basic

import asyncio


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise NotImplementedError
    if scope["path"] == "/endpoint":
        scope["endpoint"] = app
    if scope["path"] == "/late":
        await asyncio.sleep(0)
    if scope["type"] == "websocket" and scope["path"] == "/accepted":
        await receive()
        await send({"type": "websocket.accept"})
    if scope["path"] == "/started":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
    if scope["path"] == "/complete":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a"})
    raise RuntimeError("a defect")
