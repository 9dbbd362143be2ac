"""What a lifespan yields is in ``request.state`` of each request."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from citius import App, ConfigError, Request, WebSocket
from citius.testing import Client


@asynccontextmanager
async def lifespan(app: App) -> AsyncGenerator[dict[str, Any]]:
    yield {"pool": ["kept"], "name": "outer"}


def test_requests_and_websockets_have_it() -> None:
    app = App(lifespan=lifespan)

    @app.get("/")
    def handler(request: Request) -> Any:
        request.state.own = getattr(request.state, "own", 0) + 1
        request.state.pool.append("x")
        return [request.state.own, request.state.pool, request.state.name]

    @app.websocket("/ws")
    async def socket(ws: WebSocket) -> None:
        await ws.send(ws.state.name)

    with Client(app) as client:
        assert client.get("/").json() == [1, ["kept", "x"], "outer"]
        assert client.get("/").json() == [1, ["kept", "x", "x"], "outer"]
        with client.websocket("/ws") as ws:
            assert ws.receive() == "outer"


def test_mounted_applications_add_their_own() -> None:
    @asynccontextmanager
    async def of_inner(app: App) -> AsyncGenerator[dict[str, Any]]:
        yield {"name": "inner"}

    outer, inner = App(lifespan=lifespan), App(lifespan=of_inner)

    @inner.get("/")
    def handler(request: Request) -> Any:
        return [request.state.name, request.state.pool]

    outer.get("/")(handler)
    outer.mount("/inner", inner)
    with Client(outer) as client:
        assert client.get("/inner").json() == ["inner", ["kept"]]
        assert client.get("/").json() == ["outer", ["kept"]]


def test_names_are_texts() -> None:
    @asynccontextmanager
    async def odd(app: App) -> AsyncGenerator[Any]:
        yield {1: 2}

    with pytest.raises(ConfigError, match=r"lifespan .*odd.*the key 1"), Client(App(lifespan=odd)):
        pass
