"""Messages in the wrong order."""

# pyright: basic

import json


async def app(scope, receive, send):
    told = []

    async def attempt(**message):
        try:
            await send(message)
        except Exception as error:
            told.append(f"{type(error).__name__}: {error}")

    await attempt(type="websocket.send", text="early")
    await attempt(type="http.response.start", status=200)
    await attempt(type="websocket.accept", headers=[(b"Sec-WebSocket-Protocol", b"a")])
    await send({"type": "websocket.accept"})
    await attempt(type="websocket.accept")
    await attempt(type="websocket.send")
    await attempt(type="websocket.send", text="a", bytes=b"b")
    await attempt(type="websocket.send", text=b"a")
    await attempt(type="websocket.close", code=1005)
    await send({"type": "websocket.send", "bytes": None, "text": json.dumps(told)})
