"""Processes that handlers start and that keep the sockets."""

# pyright: basic

import asyncio
import os
import time

from citius import App

app = App()


@app.get("/")
def hello():
    return "Hello"


@app.get("/fork")
def fork():
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    return str(child)


@app.get("/slow")
async def slow():
    await asyncio.sleep(60)
