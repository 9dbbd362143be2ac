"""Responses that do not read their requests, in one piece or in several."""

# pyright: basic

import asyncio

from asgi_parts import body, start


async def app(scope, receive, send):
    path = scope["path"]
    if path == "/refused-pieces":
        await start(send, 403)
        for piece in (b"pi", b"e"):
            await body(send, piece, True)
            await asyncio.sleep(0.005)  # the client reads the status meanwhile, and ends its upload
        return await body(send, b"ce")
    await start(send)
    if path == "/pieces":
        for _ in range(2):
            await asyncio.sleep(0.001)
            await body(send, b"piece", True)
        return await body(send, b"ok")
    if path == "/early-pieces":
        await body(send, b"pie", True)
        return await body(send, b"ce")
    return await body(send, b"piece")
