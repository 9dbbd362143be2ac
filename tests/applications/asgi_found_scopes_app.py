"""Finds the scopes of requests by the garbage collector."""

# pyright: basic

import asyncio
import gc

from asgi_parts import answer

found, latest = [], []


def find():
    [made] = latest
    found[:] = [one for one in gc.get_objects() if id(one) in made]
    for one in found:
        one.clear()


async def app(scope, receive, send):
    parts = [scope, scope["headers"], scope["extensions"], scope["asgi"], scope["state"]]
    is_known = any(one is other for one in found for other in parts)
    seen = repr([is_known, scope]).encode()
    latest[:] = [{id(part) for part in parts}]
    parts = None
    if scope["path"] == "/find":
        asyncio.get_running_loop().call_soon(find)
    await answer(send, seen)
