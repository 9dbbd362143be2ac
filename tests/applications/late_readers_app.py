"""Handlers, and tasks of theirs, that read a body longer than their request lasts."""

# pyright: basic

import asyncio

from citius import App, Request
from citius.web.middleware import Timeout

app = App()
app.middleware(Timeout(0.05, routes={"/early": None}, skip_def=True))
ends: list[str] = []
tasks: set[asyncio.Task[None]] = set()


async def read(request: Request) -> None:
    n_bytes = 0
    try:
        async for piece in request.stream():
            n_bytes += len(piece)
    except Exception as error:
        ends.append(f"{type(error).__name__} after {n_bytes}")
        raise
    ends.append(f"all of {n_bytes}")


@app.post("/late", stream=True, on_disconnect="continue")
async def late(request: Request) -> None:
    await read(request)


@app.post("/early", stream=True)
async def early(request: Request) -> str:
    task = asyncio.get_running_loop().create_task(read(request))
    task.add_done_callback(lambda one: one.exception())
    tasks.add(task)
    await asyncio.sleep(0.01)
    return "before its body"


@app.get("/ends")
async def said() -> list[str]:
    return ends
