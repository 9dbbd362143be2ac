"""What is sent by an iterator sees the context variables of its request, and leaves none to the next."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from citius import App, Depends, Request, Router, event_stream
from citius.testing import Client
from citius.web.middleware import Middleware

user: ContextVar[str] = ContextVar("user", default="nobody")


class SetsUser(Middleware):
    """As one that authenticates does."""

    def before(self, request: Request) -> None:
        """Note who asks."""
        assert user.get() == "nobody"
        user.set(request.query.get("user", "nobody"))


def set_user(request: Request) -> None:
    assert user.get() == "nobody"
    user.set(request.query.get("user", "nobody"))


async def set_user_async(request: Request) -> None:
    set_user(request)


def by_middleware() -> tuple[App, Router]:
    app = App()
    app.middleware(SetsUser())
    return app, app


def by_dependency() -> tuple[App, Router]:
    app = App(dependencies=[Depends(set_user)])
    return app, app


def by_async_dependency() -> tuple[App, Router]:
    app = App(dependencies=[Depends(set_user_async)])
    return app, app


@pytest.mark.parametrize("how", [by_middleware, by_dependency, by_async_dependency])
def test_variables_of_the_request(how: Any) -> None:
    """An `async` iterator behind `def` middleware and dependencies had the defaults in their place."""
    app, to = how()

    @to.get("/async")
    async def pieces() -> AsyncIterator[bytes]:
        yield user.get().encode()
        user.set("another")
        yield b""

    @to.get("/def")
    def serial_pieces() -> Iterator[bytes]:
        yield user.get().encode()
        user.set("another")
        yield b""

    @to.get("/lines")
    async def lines() -> AsyncIterator[dict[str, str]]:
        yield {"user": user.get()}

    @to.get("/events")
    async def events() -> Any:
        async def of() -> AsyncIterator[str]:
            yield user.get()

        return event_stream(of())

    with Client(app) as client:
        for path in ("/async", "/def", "/lines", "/events"):
            for name in ("ann", "bob", None):
                answer = client.get(path, params={"user": name} if name else None)
                assert (name or "nobody") in answer.text, path


def test_none_is_a_value() -> None:
    app = App()
    tenant: ContextVar[str | None] = ContextVar("tenant", default="all")

    def of_nobody() -> None:
        tenant.set(None)

    @app.get("/", dependencies=[Depends(of_nobody)])
    async def pieces() -> AsyncIterator[bytes]:
        yield repr(tenant.get()).encode()

    with Client(app) as client:
        assert client.get("/").text == "None"
