"""ASGI that says on which thread it runs, if its state is that of its own loop."""

# pyright: basic

import asyncio
import sys
import threading


async def app(scope, receive, send):
    here = threading.current_thread().name
    if scope["type"] == "lifespan":
        await receive()
        scope["state"]["loop"] = asyncio.get_running_loop()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        print(f"stops in {here}.", file=sys.stderr, flush=True)
        return await send({"type": "lifespan.shutdown.complete"})
    await asyncio.sleep(0)
    is_own = scope["state"]["loop"] is asyncio.get_running_loop()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send(
        {"type": "http.response.body", "body": here.encode() if is_own else b"of another loop"}
    )
