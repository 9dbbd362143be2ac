"""Rooms with members that do not read."""

# pyright: basic

from citius import App

app = App()

strict, lenient = app.room("strict"), app.room("lenient", slow="drop")


@app.get("/missed")
def missed():
    return {"strict": len(strict), "lenient": len(lenient), "missed": lenient.missed}


@app.websocket("/{which}")
async def join(ws, which):
    room = app.room(which)
    room.join(ws)
    async for message in ws:
        room.send(message * 100_000)
