"""Exchanges that last for as long as their client lets them."""

# pyright: basic

import asyncio
import sys


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            told = await receive()
            await send({"type": told["type"] + ".complete"})
            if told["type"] == "lifespan.shutdown":
                return
    path = scope["path"]
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        print("reading", file=sys.stderr, flush=True)
        while path == "/quiet":
            await receive()
            await asyncio.sleep(0.01)  # a disconnect is told again and again
        return
    if path != "/read":
        await send({"type": "http.response.start", "status": 200, "headers": []})
    if path == "/stream":
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
    if path != "/large":
        print("reading", file=sys.stderr, flush=True)
        while (await receive()).get("more_body"):
            pass
    await send(
        {"type": "http.response.body", "body": b"x" * (50_000_000 if path == "/large" else 0)}
    )
