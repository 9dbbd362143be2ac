"""A room, one with a history, and broadcasts, to which one turn of the loop sends more than a queue holds."""

# pyright: basic

import asyncio

from citius import App, Broadcast, Request

app = App()

plain = app.room("plain")
dropping = app.room("dropping", slow="drop")
history = app.room("history", history=5000)
news = Broadcast(history=5000)
dropping_news = Broadcast(slow="drop")
ROOMS = {"plain": plain, "dropping": dropping, "history": history}
NEWS = {"news": news, "dropping-news": dropping_news}


@app.post("/burst/{which}/{count:int}/{size:int}")
async def burst(which: str, count: int, size: int):
    send = {**ROOMS, **NEWS}[which].send
    for number in range(count):
        send(f"{number:06}" + "x" * size)
    return {"sent": count}


@app.post("/bursts/{which}/{count:int}/{size:int}")
async def bursts(which: str, count: int, size: int):
    """The same, with turns of the loop in between."""
    send = {**ROOMS, **NEWS}[which].send
    for number in range(count):
        send(f"{number:06}" + "x" * size)
        await asyncio.sleep(0)
    return {"sent": count}


@app.get("/events/{which}")
async def follow(which: str, request: Request):
    return NEWS[which].response(request)


@app.get("/members/{which}")
async def members(which: str):
    one = {**ROOMS, **NEWS}[which]
    return {"members": len(one), "missed": one.missed}


@app.websocket("/join/{which}")
async def join(ws, which: str, after: str = ""):
    room = ROOMS[which]
    if which == "history":
        room.join(ws, after=after or None)
    else:
        room.join(ws)
    await ws.send("joined")
    async for _ in ws:
        pass
