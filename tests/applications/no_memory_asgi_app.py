"""Allocations that fail while ASGI is served."""

# pyright: basic

import _testcapi


async def app(scope, receive, send):
    _, what, number = scope["path"].split("/")
    _testcapi.remove_mem_hooks()
    if what == "body":
        while (await receive())["more_body"]:
            pass
    if what != "alive":
        _testcapi.set_nomemory(int(number), int(number) + 1)
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close"})
        return
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"x-number", number.encode())]}
    )
    if what == "stream":
        await send({"type": "http.response.body", "body": b"hel", "more_body": True})
    await send({"type": "http.response.body", "body": b"lo"})
