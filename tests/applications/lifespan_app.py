"""A lifespan whose STARTUP and SHUTDOWN are `complete` or `failed`."""

# pyright: basic

import os
import sys

from asgi_parts import answer


async def end(send, what):
    outcome = os.environ[what.upper()]
    more = {"message": "no database"} if outcome == "failed" else {}
    await send({"type": f"lifespan.{what}.{outcome}", **more})


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        assert (await receive())["type"] == "lifespan.startup"
        scope["state"]["shared"] = []
        await end(send, "startup")
        assert (await receive())["type"] == "lifespan.shutdown"
        await end(send, "shutdown")
        print("stopped", file=sys.stderr, flush=True)
    else:
        scope["state"]["shared"].append(1)
        scope["state"]["own"] = scope["state"].get("own", 0) + 1
        await answer(send, repr(scope["state"]).encode())
