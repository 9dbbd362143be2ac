"""Gives up its wait for a message."""

# pyright: basic

import asyncio
import contextlib

from asgi_parts import answer, read


async def app(scope, receive, send):
    await read(receive)
    for _ in range(3):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(receive(), 0.005)
    async with asyncio.timeout(1):
        await answer(send, b"x")
