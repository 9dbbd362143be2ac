"""Procedures that sessions of WebTransport call."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

from citius import App, Depends, Forbidden, Request
from citius.rpc import RpcError

app = App()
events: list[str] = []


class Unknown(RpcError):
    """There is none."""


@app.get("/events")
def told() -> list[str]:
    """What has happened."""
    return events


@app.rpc("math.add")
def add(a: int, b: int = 1) -> int:
    """Their sum."""
    return a + b


@app.rpc("math.sum")
async def total(*numbers: float) -> float:
    """The sum of any number."""
    await asyncio.sleep(0)
    return sum(numbers)


@app.rpc(blocking=True)
def threaded(text: str) -> str:
    """What is called in a thread."""
    return text.upper()


def tenant() -> str:
    """A dependency without parameters."""
    return "ada"


@app.rpc
def who(name: Annotated[str, Depends(tenant)]) -> str:
    """What a dependency says."""
    return name


@app.rpc
def find(id: int) -> str:
    """Say no."""
    raise Unknown(f"there is no user {id}", data={"id": id})


@app.rpc
def breaks() -> None:
    """Fail."""
    raise KeyError("secret")


@app.rpc
def note(text: str) -> None:
    """For notifications."""
    events.append(text)


@app.rpc
async def wait(name: str) -> None:
    """Wait until it is cancelled."""
    events.append(f"{name} waits")
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        events.append(f"{name} is cancelled")
        raise


@app.rpc
async def use_cancelled() -> None:
    """Await what is cancelled by others."""
    it = asyncio.get_running_loop().create_future()
    it.cancel()
    await it


@app.rpc
def process() -> int:
    """Which process it is."""
    return os.getpid()


@app.rpc
async def released() -> str:
    """Wait for a file."""
    events.append("held")
    while not Path(os.environ["RELEASE"]).exists():
        await asyncio.sleep(0.005)
    return "done"


@app.rpc(deadline_s=0.01)
async def late() -> None:
    """Take too long."""
    await asyncio.Event().wait()


def allowed(request: Request) -> None:
    """Let no stranger in."""
    if request.header("x-user") == "mallory":
        raise Forbidden


app.webtransport_rpc("/rpc", quic=True, dependencies=[Depends(allowed)])
