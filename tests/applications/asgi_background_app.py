"""A stream that ends with its client, and work behind it, as Starlette's StreamingResponse has."""

# pyright: basic

import asyncio
import sys

from asgi_parts import body, read, start


async def source():
    try:
        while True:
            yield b"piece"
            await asyncio.sleep(0.001)
    finally:
        print("closed", file=sys.stderr, flush=True)


async def app(scope, receive, send):
    await read(receive)
    await start(send)
    if scope["path"] != "/stream":
        return await body(send, b"here")

    async def stream():
        async for piece in source():
            await body(send, piece, True)

    task = asyncio.create_task(stream())
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()
    await asyncio.wait([task])
    print("background", file=sys.stderr, flush=True)
