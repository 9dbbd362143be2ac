"""Handlers that tell on which reactor thread they run."""

# pyright: basic

import asyncio
import contextvars
import sys
import threading
import time

from citius import App, Request, defer

app = App()

tenant = contextvars.ContextVar("tenant", default="nobody")
hooks, running = [], set()


@app.on_startup
async def begin():
    hooks.append(threading.current_thread().name)
    tenant.set("from the start")


@app.on_shutdown
async def end():
    print("hooks", hooks, "after", len(running), file=sys.stderr, flush=True)


@app.get("/thread")
def which():
    return threading.current_thread().name


@app.get("/tenant")
async def whose():
    before = tenant.get()
    tenant.set("changed")
    await asyncio.sleep(0)
    return before


@app.get("/threads")
def threads():
    return str(sum(one.name.startswith("citius-reactor-") for one in threading.enumerate()))


@app.get("/fails")
async def fails():
    raise RuntimeError("as the test wants it")


@app.get("/hang")
def hang():
    time.sleep(600)


@app.get("/defer")
async def later(request: Request):
    defer(request, work)
    return "deferred"


async def work():
    await asyncio.sleep(0.5)
    print("deferred work is done", file=sys.stderr, flush=True)


@app.get("/sleep/{ms:int}")
async def sleep(ms: int):
    running.add(loop := asyncio.get_running_loop())
    print("sleeps", file=sys.stderr, flush=True)
    await asyncio.sleep(ms / 1000)
    assert asyncio.get_running_loop() is loop
    return threading.current_thread().name


@app.get("/block", blocking=True)
def block():
    time.sleep(0.05)
    return threading.current_thread().name


@app.get("/pieces")
async def pieces():
    for _n in range(50):
        await asyncio.sleep(0)
        yield b"x" * 1000


@app.rpc
async def add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


room = app.room("all")


@app.websocket("/room")
async def chat(ws):
    room.join(ws)
    async for message in ws:
        room.send(f"{threading.current_thread().name}: {message}")
