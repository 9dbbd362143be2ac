"""A process that uses up its descriptors."""

# pyright: basic

import asyncio
import os
import resource

from citius import App

app = App()
app.forward("/behind/{path:path}", f"http://127.0.0.1:{os.environ.get('BEHIND', '9')}")


@app.get("/")
def hello():
    return "Hello"


@app.get("/wait")
async def wait():
    await asyncio.Event().wait()


@app.get("/limit")
def limit():
    return list(resource.getrlimit(resource.RLIMIT_NOFILE))
