"""newcomer B3: ``def`` dependencies of blocking handlers ran on the event loop beside ``async`` ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from citius import App, Depends, Request
from citius.errors import Conflict
from citius.testing import Client
from citius.web.middleware import Timeout
from rig import wait_for

tenant: ContextVar[str] = ContextVar("tenant", default="none")
where: dict[str, str] = {}


def note(what: str) -> None:
    where[what] = threading.current_thread().name


def session(request: Request) -> Iterator[str]:
    note("begin")
    token = tenant.set("shop")
    try:
        yield request.path
    except Conflict:
        note("conflict")
        raise
    finally:
        note("end")
        tenant.reset(token)


async def user(path: str = Depends(session)) -> AsyncIterator[str]:
    note("async")
    yield f"ann {path} {tenant.get()}"


def rights(name: str = Depends(user)) -> list[str]:
    note("plain")
    return [name, tenant.get()]


@pytest.mark.parametrize("has_middleware", [False, True])
def test_threads_and_context(has_middleware: bool) -> None:
    app = App()
    if has_middleware:
        app.middleware(Timeout(60))

    @app.get("/{fails:int}", blocking=True)
    def handler(fails: int, rights: list[str] = Depends(rights)) -> Any:
        note("handler")
        if fails:
            raise Conflict
        return [*rights, tenant.get()]

    with Client(app) as client:
        for fails, status in ((0, 200), (1, 409)):
            where.clear()
            response = client.get(f"/{fails}")
            assert response.status_code == status
            assert not where.pop("async").startswith("citius-blocking")
            assert ("conflict" in where) == bool(fails)
            assert all(name.startswith("citius-blocking") for name in where.values()), where
            if not fails:
                assert response.json() == ["ann /0 shop", "shop", "shop"]


def test_a_generator_that_is_entered_for_nobody_is_left() -> None:
    app, entered, go_on, ended = App(), threading.Event(), threading.Event(), list[str]()
    app.middleware(Timeout(0.05))

    def slow() -> Iterator[None]:
        entered.set()
        assert go_on.wait(60)
        try:
            yield
        finally:
            ended.append("slow")

    async def other() -> None: ...

    @app.get("/", blocking=True, dependencies=[Depends(other), Depends(slow)])
    def handler() -> str:
        return "never"

    with Client(app, raise_errors=False) as client:
        assert client.get("/").status_code == 503
        assert entered.is_set()
        assert ended == []
        go_on.set()
        wait_for(lambda: ended, "the end of the dependency")
    assert ended == ["slow"]


def test_values_that_are_iterators_are_left_alone() -> None:
    app = App()

    def numbers() -> Any:
        return iter([1, 2])

    async def other() -> int:
        await asyncio.sleep(0)
        return 3

    @app.get("/", blocking=True)
    def handler(some: Any = Depends(numbers), one: int = Depends(other)) -> Any:
        return [*some, one]

    with Client(app) as client:
        assert client.get("/").json() == [1, 2, 3]
