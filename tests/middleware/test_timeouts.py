"""Timeouts of handlers: who is cancelled, who is left alone, and what the client gets."""

from __future__ import annotations

import asyncio

import pytest
from citius import App, ConfigError, Request
from citius.testing import Client
from citius.web.middleware import Timeout


def test_timeouts() -> None:
    app, ended = App(), list[str]()
    app.middleware(Timeout(0.05, routes={"/patient/{id}": 30, "/endless": None}))

    @app.get("/slow")
    async def slow() -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("slow")
        return "never"

    @app.get("/own")
    async def own() -> str:
        raise TimeoutError

    @app.get("/fast")
    async def fast(request: Request) -> str:
        return "fast"

    @app.get("/patient/{id}")
    async def patient(id: int) -> str:
        await asyncio.sleep(0.1)
        return "patient"

    @app.get("/endless")
    async def endless() -> str:
        return await patient(1)

    app.get("/def")(lambda: "def")
    with Client(app, raise_errors=False) as client:
        answer = client.get("/slow")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.json()["detail"] == "no response within 0.05 s"
        assert ended == ["slow"]
        assert client.get("/own").status_code == 500
        texts = [client.get(path).text for path in ("/fast", "/patient/1", "/endless", "/def")]
        assert texts == ["fast", "patient", "patient", "def"]
        assert client.get("/nowhere").status_code == 404


def test_a_time_is_above_zero() -> None:
    with pytest.raises(ConfigError, match="seconds above 0"):
        Timeout(0)
