"""Dependencies of procedures."""

# pyright: basic

from collections.abc import AsyncIterator, Iterator
from typing import Annotated

from citius import App, Depends, Query
from citius.rpc import RpcError

app = App()

log = []


def page(limit: int = 10, offset: int = 0) -> str:
    return f"{limit}+{offset}"


def session() -> Iterator[str]:
    log.append("begin")
    try:
        yield "session"
    finally:
        log.append("end")


async def connection() -> AsyncIterator[str]:
    log.append("open")
    try:
        yield "connection"
    finally:
        log.append("closed")


def refuse() -> None:
    raise RpcError("no", type="Refused")


@app.rpc
def items(name: str, page: Annotated[str, Depends(page)]) -> str:
    return f"{name} {page}"


@app.rpc
async def awaited(link: Annotated[str, Depends(connection)], n: int = 1) -> str:
    log.append("handler")
    return f"{link} {n}"


@app.rpc
def of_both(
    link: Annotated[str, Depends(connection)], own: Annotated[str, Depends(session)]
) -> str:
    return f"{link} {own}"


@app.rpc(blocking=True)
def in_thread(own: Annotated[str, Depends(session)]) -> str:
    return own


@app.rpc(dependencies=[Depends(refuse)])
def refused() -> str:
    return "never"


@app.rpc
def fails(own: Annotated[str, Depends(session)]) -> str:
    raise RpcError("no", type="Failed")


@app.rpc
@app.get("/shared")
def shared(
    page: Annotated[str, Depends(page)], size: Annotated[int, Query(alias="n", ge=1)] = 1
) -> str:
    return f"{page} {size}"


@app.rpc
def taken() -> list[str]:
    found = list(log)
    log.clear()
    return found
