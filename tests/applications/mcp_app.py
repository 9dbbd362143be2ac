"""Tools that wait, ask and are cancelled, for tests of MCP over workers and machines (``CLUSTER``).

``RESUME_S`` is how long calls go on without their clients.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass

from citius import App
from citius.cluster import Cluster
from citius.mcp import Context, ToolError

url = os.environ.get("CLUSTER")
cluster = Cluster(url, application="mcp", secret="of all nodes") if url is not None else None
app = App(cluster=cluster)
mcp = app.mcp(
    "/mcp", name="waiting", secret=os.environ.get("MCP_SECRET"),
    resume_s=float(os.environ.get("RESUME_S", "300")),
)  # fmt: skip
log = logging.getLogger("waiting")


@dataclass
class Form:
    name: str


@mcp.tool
async def asks(context: Context, number: int) -> str:
    try:
        answer = await context.elicit("Who?", Form)
    except ToolError as error:
        log.warning("asks has ended: %s", error)
        raise
    return f"{answer.value.name if answer.value else ''} {number}"


@mcp.tool
async def waits(context: Context) -> str:
    await context.progress(1)
    try:
        await asyncio.Event().wait()
    finally:
        log.warning("waits was cancelled")
    return "never"


@mcp.tool
async def waits_alone() -> str:
    await asyncio.Event().wait()
    return "never"


@mcp.tool
async def goes_on(context: Context) -> str:
    await context.progress(1)
    await asyncio.sleep(0.2)
    log.warning("goes_on has ended")
    return "done"


@mcp.tool
async def goes_on_alone() -> str:
    log.warning("goes_on_alone has begun")
    await asyncio.sleep(0.2)
    log.warning("goes_on_alone has ended")
    return "done"


@mcp.tool
async def counts(context: Context, to: int, pause_s: float = 0.05) -> str:
    """Tells its worker, and then counts."""
    for number in range(to):
        await context.progress(number + 1, message=str(os.getpid()))
        await asyncio.sleep(pause_s)
    return f"counted to {to}"


@mcp.tool
async def polled(context: Context, times: int) -> str:
    """Closes its stream again and again."""
    for number in range(times):
        await context.close_stream(retry_s=0.01)
        await context.progress(number + 1)
    return "polled"


@app.run("/runs", runs_max=1)
async def runs() -> AsyncIterator[int]:
    yield 1
    await asyncio.Event().wait()


@mcp.tool
async def large(context: Context, size: int) -> str:
    await context.progress(1)
    return "x" * size


@mcp.tool
async def logs(context: Context) -> str:
    await context.info("said")
    return "done"


@mcp.tool
def touch(uri: str) -> str:
    mcp.resource_updated(uri)
    return "touched"


@mcp.resource("notes://{id}")
def note(id: int) -> str:
    return f"note {id}"
