"""A lifespan that hangs at its end, at its START, or beyond its cancellation (IGNORES)."""

# pyright: basic

import asyncio
import os
import sys


async def app(scope, receive, send):
    await receive()
    if "START" in os.environ:
        print("asked to start", file=sys.stderr, flush=True)
        await asyncio.sleep(1000)
    await send({"type": "lifespan.startup.complete"})
    await receive()
    print("asked to stop", file=sys.stderr, flush=True)
    while True:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            if "IGNORES" not in os.environ:
                raise
