"""Handlers that end with exceptions of the interpreter."""

# pyright: basic

import asyncio
import sys

from citius import App

app = App()


@app.get("/")
def hello():
    return "Hello"


@app.get("/exit/def")
def exit_def():
    sys.exit(3)


@app.get("/exit/before")
async def exit_before():
    sys.exit(3)


@app.get("/exit/after")
async def exit_after():
    await asyncio.sleep(0)
    sys.exit(3)


@app.get("/exit/later")
async def exit_later():
    await asyncio.sleep(0.001)
    raise KeyboardInterrupt


@app.get("/exit/blocking", blocking=True)
def exit_blocking():
    sys.exit(3)
