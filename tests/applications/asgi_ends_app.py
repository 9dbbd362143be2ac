"""Keeps what it receives at the end of a WebSocket, or counts what it sends; HTTP tells it."""

# pyright: basic

from asgi_parts import answer

seen = []


async def app(scope, receive, send):
    if scope["type"] == "http":
        return await answer(send, repr(seen).encode())
    await receive()
    await send({"type": "websocket.accept"})
    if scope["path"] == "/flood":
        for n in range(50_000):
            await send({"type": "websocket.send", "bytes": b"x" * 1000})
            seen[:] = [n]
        return None
    if scope["path"] == "/ours":
        await send({"type": "websocket.close", "code": 4005, "reason": "enough"})
    seen.append(await receive())
    seen.append(await receive())
    try:
        await send({"type": "websocket.send", "text": "late"})
    except OSError as error:
        seen.append(type(error).__name__)
