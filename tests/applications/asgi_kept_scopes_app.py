"""Keeps things in scopes, and counts what is left of them."""

# pyright: basic

import asyncio
import gc
import weakref

from asgi_parts import answer

alive = weakref.WeakSet()


class Kept:
    receive = send = None


def app(scope, receive, send):
    kept = scope["kept"] = Kept()
    kept.receive, kept.send = receive, send
    alive.add(kept)
    if scope["path"] == "/uncallable":
        raise TypeError
    return go_on(scope, receive, send)


async def go_on(scope, receive, send):
    if scope["path"] == "/count":
        gc.collect()
        return await answer(send, str(len(alive)).encode())
    if scope["path"] == "/late":
        await asyncio.sleep(0)
    if scope["path"] == "/raise":
        raise ValueError
    await answer(send, b"x")
