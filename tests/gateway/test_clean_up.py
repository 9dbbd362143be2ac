"""In which order a request is cleaned up: stream, dependencies, deferred work."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from citius import App, Depends, Request, Response, defer, event_stream
from citius.testing import Client
from citius.web.execution.background import held

tenant_of: contextvars.ContextVar[str] = contextvars.ContextVar("tenant")
log: list[str] = []


def tenant() -> Iterator[None]:
    token = tenant_of.set("t")
    yield
    tenant_of.reset(token)
    log.append("reset")


async def _numbers() -> AsyncIterator[str]:
    for number in "01":
        await asyncio.sleep(0)
        yield number


def transaction(fails: bool = False) -> Iterator[None]:
    yield
    if fails:
        raise RuntimeError("the commit failed")
    log.append("committed")


async def async_transaction(fails: bool = False) -> AsyncIterator[None]:
    yield
    await asyncio.sleep(0)
    if fails:
        raise RuntimeError("the commit failed")
    log.append("committed")


@pytest.mark.parametrize("kind", ["def", "async", "blocking"])
@pytest.mark.parametrize("is_response", [False, True])
def test_a_stream_ends_in_the_context_of_its_dependencies(kind: str, is_response: bool) -> None:
    """Frameworks 7."""
    log.clear()
    app = App()

    def pieces(_: Annotated[None, Depends(tenant)]) -> Any:
        made = (tenant_of.get() + str(number) for number in range(2))
        return Response(made) if is_response else made

    async def async_pieces(_: Annotated[None, Depends(tenant)]) -> Any:
        made = (tenant_of.get() + number async for number in _numbers())
        return Response(made) if is_response else made

    app.get("/", blocking=kind == "blocking")(async_pieces if kind == "async" else pieces)
    with Client(app) as client:
        assert client.get("/").text == "t0t1"
        assert log == ["reset"]


def test_an_event_source_ends_before_its_session() -> None:
    """Frameworks 8."""
    log.clear()
    app = App()

    async def session() -> AsyncIterator[None]:
        try:
            yield
        finally:
            log.append("session closed")

    @app.get("/")
    async def events(_: Any) -> Response:
        async def source() -> AsyncIterator[str]:
            try:
                while True:
                    yield "x"
                    await asyncio.sleep(0.001)
            finally:
                await asyncio.sleep(0)
                log.append("source ends")

        return event_stream(source())

    events.__annotations__["_"] = Annotated[None, Depends(session)]

    async def wait() -> None:
        while len(log) < 2:
            await asyncio.sleep(0.001)

    with Client(app) as client:
        with client.stream("GET", "/") as response:
            next(iter(response))
        client.run(wait())
    assert log == ["source ends", "session closed"]


@pytest.mark.parametrize("kind", ["def", "async", "blocking"])
@pytest.mark.parametrize("of", [transaction, async_transaction])
def test_deferred_work_begins_after_the_commit(kind: str, of: Any) -> None:
    """Newcomer A3: and not at all after one that failed."""
    log.clear()
    app = App()

    def mail() -> None:
        log.append("mail")

    def plain(request: Request, tx: Any, refuses: bool = False) -> str:
        defer(request, mail)
        if refuses:
            raise RuntimeError("refused")
        return "x"

    async def asynchronous(request: Request, tx: Any, refuses: bool = False) -> str:
        return plain(request, tx, refuses)

    handler = asynchronous if kind == "async" else plain
    handler.__annotations__["tx"] = Annotated[None, Depends(of)]
    app.get("/", blocking=kind == "blocking")(handler)

    async def wait() -> None:
        while "mail" not in log:
            await asyncio.sleep(0.001)

    with Client(app, raise_errors=False) as client:
        assert client.get("/").status_code == 200
        client.run(wait())
        assert log == ["committed", "mail"]
        assert client.get("/?fails=true").status_code == 500
        assert client.get("/?refuses=true").status_code == 500
    assert log.count("mail") == 1  # the client has waited for deferred work


def _stays() -> Iterator[int]:
    yield 1


async def _stays_async() -> AsyncIterator[int]:
    yield 1


def _yields_nothing() -> Iterator[int]:
    yield from ()


def _yields_twice() -> Iterator[int]:
    yield 1
    yield 2


@pytest.mark.parametrize(
    ("dependency", "returned", "status"),
    [
        (_stays, lambda: "x", 200),
        (_stays_async, lambda: "x", 200),
        (_stays, lambda: iter(["x", "y"]), 200),
        (_stays_async, lambda: iter(["x", "y"]), 200),
        (_stays, lambda: 1 / 0, 500),
        (_stays_async, lambda: 1 / 0, 500),
        (_yields_nothing, lambda: "x", 500),
        (_yields_twice, lambda: "x", 500),
        (transaction, lambda: "x", 500),
        (async_transaction, lambda: "x", 500),
    ],
)
def test_nothing_of_a_request_is_kept_after_it(dependency: Any, returned: Any, status: int) -> None:
    """Whatever becomes of the dependency and of the handler, on GET and on HEAD."""
    app = App()

    @app.get("/")
    def handler(_: object = Depends(dependency)) -> Any:
        return returned()

    with Client(app, raise_errors=False) as client:
        assert client.get("/?fails=true").status_code == status
        assert client.head("/?fails=true").status_code == status
    assert held == {}
