"""Procedures that are called by Connect."""

# pyright: basic

import asyncio
import datetime
import time
from collections.abc import AsyncIterator, Iterator

import msgspec
from citius import App, Depends, Forbidden, NotFound, Request, Unauthorized
from citius.rpc import RpcError

app = App()


class User(msgspec.Struct):
    id: int
    name: str
    since: datetime.datetime = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


class Secret(User):
    password: str = "secret"


class OutOfStock(RpcError):
    pass


def caller(request: Request) -> None:
    if request.header("authorization") != "Bearer right":
        raise Unauthorized("who are you?")


app.connect()
app.connect("/private", service="shop.Private", dependencies=[Depends(caller)])


@app.middleware
async def count(request, next):
    response = await next(request)
    response.headers["x-middleware"] = "1"
    return response


@app.rpc("users.get")
async def get_user(id: int, user_name: str = "ann") -> User:
    """A user."""
    if id == 404:
        raise NotFound("there is no user 404")
    if id == 403:
        raise Forbidden
    if id == 1:
        raise OutOfStock("none left", data={"wanted": 3})
    if id == 500:
        raise ValueError("a secret")
    return Secret(id, user_name)


@app.rpc("math.add")
def add(a: int, b: float = 1) -> float:
    return a + b


@app.rpc
def nothing() -> None: ...


@app.rpc(blocking=True)
def waits(ms: int) -> str:
    time.sleep(ms / 1000)
    return "done"


@app.rpc(deadline_s=0.2)
async def slow(ms: int) -> str:
    await asyncio.sleep(ms / 1000)
    return "done"


@app.rpc("users.watch")
async def watch(count: int, fail: bool = False, ms: int = 0) -> AsyncIterator[User]:
    for number in range(count):
        await asyncio.sleep(ms / 1000)
        yield Secret(number, "x")
    if fail:
        raise NotFound("no more")


@app.rpc
def numbers(count: int) -> Iterator[int]:
    yield from range(count)


@app.rpc
async def tags(names: list[str]) -> dict[str, int]:
    return {name: len(name) for name in names}
