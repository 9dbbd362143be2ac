"""Rooms of several workers."""

# pyright: basic

import os
import signal
import time
import warnings

from citius import App

app = App()

room = app.room("all", slow="drop")


async def talk(ws, message):
    command, _, rest = message.partition(" ")
    if command == "burst":
        count, size = map(int, rest.split())
        for n in range(count):
            room.send(f"{n:06}" + "x" * size)
    elif command == "missed":
        await ws.send(str(room.missed))
    elif command == "block":
        while not os.path.exists(rest):
            time.sleep(0.01)
    else:
        room.send(message)


@app.websocket("/")
async def join(ws):
    room.join(ws)
    await ws.send(str(os.getpid()))
    async for message in ws:
        await talk(ws, message)


@app.get("/fork/{pid:int}")
async def fork(pid: int):
    if pid != os.getpid():
        return 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        room.send("from the child")
        signal.pause()
    return child
