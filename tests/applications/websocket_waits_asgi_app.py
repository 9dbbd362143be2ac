"""An application that has not accepted yet when its client leaves."""

# pyright: basic

ended = []


async def app(scope, receive, send):
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": str(len(ended)).encode()})
        return
    assert (await receive())["type"] == "websocket.connect"
    assert await receive() == {"type": "websocket.disconnect", "code": 1006, "reason": ""}
    try:
        await send({"type": "websocket.accept"})
    except OSError:
        ended.append("asgi")
