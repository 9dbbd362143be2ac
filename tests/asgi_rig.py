"""A server for one ASGI application, as small as can be: calls by hand, messages as they come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any


class Call:
    """One call of an application."""

    def __init__(self, app: Callable[..., Any], scope: dict[str, Any]) -> None:
        self.sent: list[dict[str, Any]] = []
        self._to_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._news = asyncio.Condition()
        self.may_send = asyncio.Event()
        self.may_send.set()
        self.task = asyncio.create_task(app(scope, self._to_app.get, self._send))

    def give(self, **message: Any) -> None:
        self._to_app.put_nowait(message)

    async def _send(self, message: dict[str, Any]) -> None:
        await self.may_send.wait()
        async with self._news:
            self.sent.append(message)
            self._news.notify_all()

    async def until(self, condition: Callable[[list[dict[str, Any]]], object]) -> None:
        async with asyncio.timeout(10), self._news:
            await self._news.wait_for(lambda: condition(self.sent))

    async def end(self) -> None:
        async with asyncio.timeout(10):
            await self.task

    @property
    def status(self) -> int:
        return self.sent[0]["status"]

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(one.get("body", b"") for one in self.sent[1:])


def http_scope(method: str = "GET", path: str = "/", **more: Any) -> dict[str, Any]:
    return {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1",
        "method": method, "scheme": "http", "path": path, "raw_path": path.encode(),
        "query_string": b"", "root_path": "", "headers": [(b"host", b"shop.test")],
        "client": ("192.0.2.7", 4711), "server": ("shop.test", 80), **more,
    }  # fmt: skip


async def ask(
    app: Callable[..., Any], method: str = "GET", path: str = "/", body: bytes = b"", **more: Any
) -> Call:
    """One request with a whole body, and its whole response."""
    scope = http_scope(method, path, **more)
    if body:
        scope["headers"] = [*scope["headers"], (b"content-length", str(len(body)).encode())]
    call = Call(app, scope)
    call.give(type="http.request", body=body, more_body=False)
    await call.end()
    return call


@asynccontextmanager
async def lifespan(app: Callable[..., Any]):
    call = Call(app, {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}})
    call.give(type="lifespan.startup")
    await call.until(len)
    assert call.sent[0]["type"] == "lifespan.startup.complete", call.sent
    yield call
    call.give(type="lifespan.shutdown")
    await call.end()
    assert call.sent[1]["type"] == "lifespan.shutdown.complete", call.sent
