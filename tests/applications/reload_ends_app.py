"""Handlers that are at work when the code changes."""

# pyright: basic

import asyncio
import os

from citius import App

app = App()


@app.get("/")
def hello():
    return str(os.getpid())


@app.get("/end")
def end():
    os.kill(os.getpid(), 9)


@app.get("/stream")
async def stream():
    while True:
        yield b"x"
        await asyncio.sleep(0.05)
