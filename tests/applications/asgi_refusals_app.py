"""Refuses WebSockets; with SUSPENDS after a turn of the loop."""

# pyright: basic

import asyncio
import os


async def app(scope, receive, send):
    await receive()
    if "SUSPENDS" in os.environ:
        await asyncio.sleep(0)
    if scope["path"] == "/close":
        await send({"type": "websocket.close", "code": 4000})
    elif scope["path"] == "/denial":
        start = {"type": "websocket.http.response.start", "status": 402}
        headers = [(b"content-type", b"text/plain"), (b"x-a", b"b")]
        await send({**start, "headers": headers})
        more = {"type": "websocket.http.response.body"}
        await send({**more, "body": b"pay ", "more_body": True})
        await send({**more, "body": b"first"})
    elif scope["path"] == "/raise":
        raise RuntimeError("a defect")
