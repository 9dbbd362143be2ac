"""Handlers that tell the process, the version of the code, or take their time."""

# pyright: basic

import asyncio
import os

from citius import App

app = App()


@app.get("/")
def pid():
    return str(os.getpid())


@app.get("/slow/{ms:int}")
async def slow(ms: int):
    await asyncio.sleep(ms / 1000)
    return str(os.getpid())


@app.get("/version")
def version():
    return VERSION


VERSION = "one"
