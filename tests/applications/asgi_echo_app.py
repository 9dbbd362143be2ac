"""Sends messages of a WebSocket back."""

# pyright: basic


async def app(scope, receive, send):
    assert scope["type"] == "websocket"
    assert await receive() == {"type": "websocket.connect"}
    await send({"type": "websocket.accept"})
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return
        await send({**message, "type": "websocket.send"})
