"""WebSockets on Citius: messages sent back, and messages sent to all."""

from citius import App

app = App()
room = app.room("all")


@app.websocket("/echo")
async def echo(ws):
    async for message in ws:
        await ws.send(message)


@app.websocket("/all")
async def broadcast(ws):
    room.join(ws)
    async for message in ws:
        room.send(message)
