"""Counts what it has sent."""

# pyright: basic

from asgi_parts import answer, body, start

sent = 0


async def app(scope, receive, send):
    global sent
    if scope["path"] == "/sent":
        return await answer(send, str(sent).encode())
    await start(send, 200, (b"content-length", b"16000000"))
    for _ in range(160):
        await body(send, bytes(100_000), True)
        sent += 100_000
    await body(send)
