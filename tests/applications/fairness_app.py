"""Handlers that take long beside one that does not."""

# pyright: basic

import asyncio
import time

from citius import App

app = App()

gate = asyncio.Event()
made = [0]


@app.get("/")
def hello():
    return "Hello"


@app.get("/busy")
def busy():
    until = time.perf_counter() + 0.001
    while time.perf_counter() < until:
        pass
    return "busy"


@app.get("/slow")
async def slow():
    await gate.wait()
    return "slow"


@app.get("/open")
async def open_gate():
    gate.set()


@app.get("/large/{size:int}")
def large(size):
    made[0] += 1
    return b"x" * size


@app.get("/made")
def how_many():
    return made[0]
