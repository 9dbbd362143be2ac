"""A process that uses up its descriptors."""

# pyright: basic

import asyncio
import os
import resource

from citius import App
from citius.http import Client, Limits

app = App()
# Idle connections to another server keep their descriptors until they end by themselves.
behind = Client(f"http://127.0.0.1:{os.environ.get('BEHIND', '9')}", limits=Limits(keepalive_s=0.1))
app.forward("/behind/{path:path}", behind)


@app.get("/")
def hello():
    return "Hello"


@app.get("/wait")
async def wait():
    await asyncio.Event().wait()


@app.get("/limit")
def limit():
    return list(resource.getrlimit(resource.RLIMIT_NOFILE))
