"""Procedures of every kind."""

# pyright: basic

import asyncio
import math
import os
import threading
import time
from typing import Annotated

import msgspec
from citius import App, Conflict
from citius.rpc import RpcError

app = App()


class User(msgspec.Struct):
    id: int
    name: str = "nobody"


class UnknownUser(RpcError):
    pass


app.state.noted = []
app.state.cancelled = []
app.state.called = 0


@app.rpc
@app.get("/")
def hello() -> str:
    return "Hello World!"


@app.rpc
@app.get("/sum/{a:int}/{b:int}")
def sum(a: int, b: int) -> int:
    return a + b


@app.rpc("users.get")
async def get_user(id: Annotated[int, msgspec.Meta(ge=0)], *, name: str = "nobody") -> User:
    await asyncio.sleep(0)
    if id > 100:
        raise UnknownUser(f"there is no user {id}", data={"id": id})
    return User(id, name)


@app.rpc
def echo(value=None):
    return value


@app.rpc
def total(*numbers: float) -> float:
    return math.fsum(numbers)


@app.rpc
async def sleep(seconds: float, answer: str = "slept") -> str:
    app.state.called += 1
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        app.state.cancelled.append(answer)
        raise
    return answer


@app.rpc(blocking=True)
def block(seconds: float) -> str:
    time.sleep(seconds)
    return threading.current_thread().name


@app.rpc
def note(text: str) -> None:
    app.state.noted.append(text)


@app.rpc
async def note_later(seconds: float, text: str) -> str:
    await asyncio.sleep(seconds)
    app.state.noted.append(text)
    return text


@app.rpc(blocking=True)
def note_in_a_thread(seconds: float, text: str) -> str:
    time.sleep(seconds)
    app.state.noted.append(text)
    return text


@app.rpc
def seen() -> dict[str, object]:
    return {"noted": app.state.noted, "cancelled": app.state.cancelled, "called": app.state.called}


@app.rpc
def fail() -> None:
    raise ValueError("the password is 1234")


@app.rpc
def refuse() -> None:
    raise Conflict("taken already")


@app.rpc
def odd():
    return object()


@app.rpc
def ignore(value: bytes, size: int = 0) -> bytes:
    return b"x" * size


@app.rpc
def pid() -> int:
    return os.getpid()


@app.rpc(deadline_s=0.05)
async def hasty() -> None:
    try:
        await asyncio.sleep(30)
    finally:
        app.state.cancelled.append("hasty")
