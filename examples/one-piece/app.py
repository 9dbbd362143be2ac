"""Compiled goroutines, coroutines, a procedure and a page; examples/one-piece/README.md explains them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import classifier
import msgspec
from citius import App, Body, Event, Request, Response, html_response
from citius.go import Chan, chan, share
from citius.redis import Redis

NAMES = ("navytux.spb.ru", "www.nexedi.com", "lab.nexedi.com", "www.erp5.com")
Text = Annotated[str, msgspec.Meta(max_length=1000)]

texts: Chan[bytes] = chan(64, type=bytes)  # what is to be classified
results: Chan[Any] = chan(1, type="<7q")  # what has come of it: struct Counts of classifier.pyx
redis = Redis(os.environ.get("REDIS", "redis://127.0.0.1:6379"))
share("texts", texts)
share("results", results)
share("names", redis)

app = App(lifespan=redis.lifespan)
progress = app.broadcast("progress")  # of all workers
page = Path(__file__).with_name("page.html").read_text()

# Two routes without a line of Python in them.
app.get("/classify/{rest:path}", compiled=classifier.classify, serial=True)
app.post("/lines", compiled=classifier.accept_lines, serial=True)


@app.post("/texts", status_code=202)
async def accept(given: Annotated[list[Text], Body()]) -> int:
    """The same channel from a coroutine: it is awaited while the workers are behind."""
    return await hand_over(given)


@app.rpc
async def submit(*given: Text) -> int:
    """The same channel from a procedure."""
    return await hand_over(given)


async def hand_over(given: Sequence[str]) -> int:
    classifier.start()
    for text in given:
        await texts.send(text.encode())
    return len(given)


async def follow() -> None:
    """Tell the browsers what the goroutines have done since the last event."""
    async for done, failed, total, *counts in results:
        now = {"texts": done, "failed": failed, "total": total, "counts": counts}
        progress.send(Event(now, event="done"))


@app.on_startup
async def start() -> None:
    for number, name in enumerate(NAMES):
        await redis.set(f"name:{number}", name, nx=True)
    app.state.follower = asyncio.create_task(follow())


@app.on_shutdown
async def stop() -> None:
    app.state.follower.cancel()


@app.get("/progress")
async def events(request: Request) -> Response:
    return progress.response(request)


@app.get("/")
def index() -> Response:
    return html_response(page)
