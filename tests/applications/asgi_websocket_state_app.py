"""State of the lifespan in a WebSocket."""

# pyright: basic


async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        scope["state"]["pool"] = "a pool"
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": scope["state"]["pool"]})
