"""Handlers that hold up the event loop, and some that do not."""

# pyright: basic

import asyncio
import time

from citius import App

app = App()


@app.get("/quick")
def quick():
    return "quick"


@app.get("/slow/{n:int}")
def slow(n: int):
    time.sleep(0.05)
    return "slow"


@app.get("/slowest")
def slowest():
    time.sleep(0.3)
    return "slow"


@app.post("/body")
def body(data: bytes):
    time.sleep(0.05)
    return "slow"


@app.get("/first-step")
async def first_step():
    time.sleep(0.05)
    await asyncio.sleep(0)
    return "slow"


@app.get("/later-step")
async def later_step():
    await asyncio.sleep(0)
    time.sleep(0.05)
    return "slow"


@app.get("/busy/{kind}")
async def busy(kind: str):
    if kind == "step":
        await asyncio.sleep(0)
    end = time.thread_time() + 0.1
    while time.thread_time() < end:
        pass
    return "busy"


@app.get("/waits")
async def waits(for_s: float = 0.1):
    await asyncio.sleep(for_s)
    return "waited"


@app.get("/thread", blocking=True)
def thread(for_s: float = 0.1):
    time.sleep(for_s)
    return "waited"


@app.get("/short")
def short():
    time.sleep(0.01)
    return "short"
