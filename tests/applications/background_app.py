"""Work that goes on after the response."""

# pyright: basic

import asyncio
import gc
import sys
import weakref

from asgi_parts import answer, body, start

futures = weakref.WeakSet()


async def app(scope, receive, send):
    path = scope["path"]
    if path == "/collect":
        gc.collect()
        for future in list(futures):
            future.set_result(None)
        return await answer(send, str(len(futures)).encode())
    if path == "/open":
        await start(send)
        await body(send, b"begun", True)
        return await asyncio.sleep(1000)
    await answer(send, b"begun")
    if path == "/behind":
        # Only the coroutine itself refers to what it waits for.
        future = asyncio.get_running_loop().create_future()
        futures.add(future)
        await future
    else:
        print("at work", file=sys.stderr, flush=True)
        await asyncio.sleep(float(path[1:]))
    print("through", file=sys.stderr, flush=True)
