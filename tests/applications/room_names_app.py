"""Rooms with names of every kind."""

# pyright: basic

import os

from citius import App

app = App()

rooms = [app.room(name) for name in ("\udc80", "x" * 100_000, "")]


@app.websocket("/")
async def join(ws):
    for room in rooms:
        room.join(ws)
    await ws.send(str(os.getpid()))
    async for message in ws:
        for n, room in enumerate(rooms):
            room.send(f"{n} {message}")
