"""Rooms and broadcasts of several workers; clients count what they get and are told is missing."""

# pyright: basic

import asyncio
import os

from citius import App, Event, Request, WebSocket

app = App()
plain = app.room("plain", on_gap=lambda missed: f"gap {missed}")
log = app.room("log", history=10_000)
news = app.broadcast("news", history=10_000)
short = app.broadcast("short")


@app.websocket("/plain")
async def talk(ws: WebSocket):
    await ws.send(f"worker {os.getpid()}")
    plain.join(ws)
    async for _ in ws:
        pass


@app.websocket("/log")
async def follow_log(ws: WebSocket, after: str = ""):
    await ws.send(f"worker {os.getpid()}")
    log.join(ws, after=after or None)
    async for _ in ws:
        pass


@app.get("/events/{name}")
async def follow(request: Request, name: str):
    response = (news if name == "news" else short).response(request)
    response.headers["x-worker"] = str(os.getpid())
    return response


@app.post("/flood/{first:int}/{count:int}/{size:int}")
async def flood(first: int, count: int, size: int):
    for number in range(first, first + count):
        text = f"{number} " + "x" * size
        for one in (plain, log):
            one.send(text)
        for one in (news, short):
            one.send(Event(text))
        if number % 10 == 0:
            await asyncio.sleep(0)
    return os.getpid()
