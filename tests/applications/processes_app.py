"""Handlers that tell the process, the version of the code, or take their time."""

# pyright: basic

import asyncio
import os
import time

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


@app.get("/orphan")
def orphan():
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            time.sleep(0.2)
        os._exit(0)
    os.waitpid(child, 0)
    return "left"


VERSION = "one"
