"""Waits for the disconnect of its client."""

# pyright: basic

import sys

from asgi_parts import body, read, start


async def app(scope, receive, send):
    await read(receive)
    await start(send)
    await body(send, b"begun", True)
    message = await receive()
    print("told", message, file=sys.stderr, flush=True)
    await body(send, b"more", True)
    print("sent in vain", file=sys.stderr, flush=True)
    try:
        while True:
            await body(send, b"more", True)
    except OSError as error:
        print("raised", type(error).__name__, file=sys.stderr, flush=True)
