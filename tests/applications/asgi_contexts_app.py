"""What each request finds in its context and its task."""

# pyright: basic

import asyncio
import contextvars

from asgi_parts import answer

number = contextvars.ContextVar("number", default=0)


async def app(scope, receive, send):
    seen = number.get()
    number.set(seen + 1)
    task = asyncio.current_task()
    if scope["path"] == "/late":
        await asyncio.sleep(0)
    same = task is asyncio.current_task() and number.get() == seen + 1
    await answer(send, f"{seen} {same}".encode())
