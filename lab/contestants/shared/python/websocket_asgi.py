"""WebSockets as a raw ASGI application: messages sent back, and messages sent to all."""

members = []


async def app(scope, receive, send):
    """Serve one WebSocket."""
    assert scope["type"] == "websocket"
    await receive()
    await send({"type": "websocket.accept"})
    if scope["path"] == "/all":
        return await broadcast(receive, send)
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def broadcast(receive, send):
    """Send each message to every member."""
    members.append(send)
    try:
        while (message := await receive())["type"] == "websocket.receive":
            copy = {"type": "websocket.send", "text": message["text"]}
            for member in members.copy():
                try:
                    await member(copy)
                except Exception:
                    pass  # that member has left
    finally:
        members.remove(send)
