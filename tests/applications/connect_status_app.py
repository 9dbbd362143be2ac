"""Procedures that end in several ways, for tests of the codes that are logged and counted."""

from __future__ import annotations

from collections.abc import AsyncIterator

from citius import App, NotFound
from citius.rpc import RpcError

app = App()
app.connect("/api")


class OutOfStock(RpcError):
    """There is none left."""


@app.rpc("shop.get")
async def get(id: int) -> dict[str, int]:
    if id == 404:
        raise NotFound("there is no such article")
    return {"id": id}


@app.rpc("shop.blocked", blocking=True)
def blocked() -> str:
    raise OutOfStock("none left")


@app.rpc("shop.count")
async def count(to: int) -> AsyncIterator[int]:
    if to < 0:
        raise OutOfStock("none left")
    for number in range(to):
        yield number
