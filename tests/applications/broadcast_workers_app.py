"""A broadcast to the streams of several workers."""

# pyright: basic

import asyncio
import os
import threading

from citius import App, Event, Request, last_event_id

app = App()
news = app.broadcast("news", history=100)
plain = app.broadcast("plain")
short = app.broadcast("short", history=3)
BY_NAME = {"news": news, "plain": plain, "short": short}


@app.get("/{name}")
async def follow(request: Request, name: str):
    response = BY_NAME[name].response(request)
    response.headers["x-worker"] = str(os.getpid())
    response.headers["x-known"] = last_event_id(request) or ""
    return response


@app.post("/{name}/{first:int}/{count:int}")
async def send(name: str, first: int, count: int, own: bool = False):
    for number in range(first, first + count):
        BY_NAME[name].send(Event(f"{os.getpid()} {number}", id=f"own{number}" if own else None))
    return os.getpid()


@app.post("/threads/{count:int}")
async def from_threads(count: int):
    """Two threads and the loop at once."""

    def run(first):
        for number in range(first, first + count):
            news.send(f"{os.getpid()} {number}")

    threads = [threading.Thread(target=run, args=(first,)) for first in (1_000_000, 2_000_000)]
    for thread in threads:
        thread.start()
    run(0)
    for thread in threads:
        await asyncio.to_thread(thread.join)
    return os.getpid()


@app.get("/state/{name}")
async def state(name: str):
    one = BY_NAME[name]
    return {"pid": os.getpid(), "followers": len(one), "missed": one.missed}
