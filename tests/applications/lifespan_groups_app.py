"""A lifespan with a task group, of asyncio or anyio (GROUP), and a handler that starts a task in it."""

# pyright: basic

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from citius import App


async def fail() -> None:
    await asyncio.sleep(0)
    raise RuntimeError("of the lifespan")


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[None]:
    if os.environ["GROUP"] == "anyio":
        import anyio

        async with anyio.create_task_group() as group:
            app.state.start = lambda: group.start_soon(fail)
            yield
    else:
        async with asyncio.TaskGroup() as tasks:
            app.state.start = lambda: tasks.create_task(fail())
            yield
    print("left", flush=True)


app = App(lifespan=lifespan)


@app.get("/fail")
async def fail_group() -> str:
    app.state.start()
    await asyncio.sleep(0.1)
    return "served"


@app.get("/cancel")
async def cancel_all() -> None:
    for task in asyncio.all_tasks():
        task.cancel()
    await asyncio.sleep(0)
