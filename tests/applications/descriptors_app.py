"""A process that uses up its descriptors."""

# pyright: basic

import asyncio
import resource

from citius import App

app = App()


@app.get("/")
def hello():
    return "Hello"


@app.get("/wait")
async def wait():
    await asyncio.Event().wait()


@app.get("/limit")
def limit():
    return list(resource.getrlimit(resource.RLIMIT_NOFILE))
