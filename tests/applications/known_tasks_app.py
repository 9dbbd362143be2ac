"""Watches all tasks of the loop, by what PLAIN names: `id`, `weakref.ref` or `weakref.proxy`."""

# pyright: basic

import asyncio
import os
import weakref

from citius import App

app = App()

plain = {"id": id, "weakref.ref": weakref.ref, "weakref.proxy": weakref.proxy}[os.environ["PLAIN"]]
known, watched = weakref.WeakKeyDictionary(), {}


async def watch():
    while True:
        for task in asyncio.all_tasks():
            if id(task) not in watched:
                watched[id(task)] = plain(task)
            app.state.seen |= task.get_name() == "citius-request"
        task = None
        await asyncio.sleep(0.001)


@app.on_startup
async def begin():
    app.state.seen = False
    app.state.watching = asyncio.ensure_future(watch())


@app.on_shutdown
async def end():
    app.state.watching.cancel()


@app.get("/seen")
async def seen():
    return str(app.state.seen)


@app.get("/{whom}")
async def whose(whom: str):
    return known.setdefault(asyncio.current_task(), whom)
