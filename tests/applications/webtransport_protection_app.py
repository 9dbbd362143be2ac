"""A session behind every kind of protection of tests/gateway/test_protection.py, each below its name.

So is the session of ``webtransport_rpc``, and what a handler declares by itself: its dependencies in every
style, and parameters that the request does not satisfy.
"""

# pyright: basic

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated, Any

from citius import App, Cookie, Depends, Header, Query, Request, Router, WebTransportSession
from citius import Path as InPath
from citius.web.middleware import CSRF, Middleware, Timeout, TrustedHosts

sys.path.insert(0, str(Path(__file__).parents[1] / "gateway"))
from test_protection import (  # pyright: ignore[reportMissingImports]
    BY_APP,
    BY_ROUTER,
    Forbidden,
    around_app,
    async_guard,
    guard,
)

app = App()
names: list[str] = []


async def member(session: WebTransportSession) -> None:
    """What is protected."""
    await session.accept()
    await session.close(0, "SECRET")


def handler(to: Router) -> None:
    """A handler of sessions."""
    to.webtransport("/handler")(member)


def procedures(to: Router) -> None:
    """Sessions that call procedures."""
    if isinstance(to, App):
        to.webtransport_rpc("/procedures")


for how in (*BY_APP, *BY_ROUTER, around_app):
    for kind in (handler, procedures):
        outer, to = how()
        kind(to)
        prefix = f"/{how.__name__}/of_{kind.__name__}"
        app.mount(prefix, outer)
        if kind is handler or isinstance(to, App):
            inside = "/around" if how is around_app else ""
            names.append(f"{prefix}{inside}/{kind.__name__}")


def refuse(connection: Any, next: Any) -> Any:
    """Middleware, of connections or of requests."""
    raise Forbidden("not for you")


async def refuse_async(connection: Any, next: Any) -> Any:
    """Middleware, of connections or of requests."""
    raise Forbidden("not for you")


class Refuses(Middleware):
    """Middleware for requests."""

    def before(self, request: Request) -> None:
        """Refuse."""
        raise Forbidden("not for you")


class Closes:
    """ASGI middleware."""

    def __init__(self, app: Any, first: str) -> None:
        self.first = first

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Refuse by this message."""
        assert scope["type"] == "webtransport"
        assert await receive() == {"type": "webtransport.connect"}
        await send({"type": self.first, "status": 403})


for add in (
    lambda one: one.middleware(refuse),
    lambda one: one.middleware(refuse_async),
    lambda one: one.middleware(Refuses()),
    lambda one: one.add_middleware(Closes, "webtransport.close"),
    lambda one: one.add_middleware(Closes, "webtransport.http.response.start"),
    lambda one: one.middleware(CSRF()),
    lambda one: one.middleware(TrustedHosts(["example.com"])),
    lambda one: one.connection_middleware(refuse),
    lambda one: one.connection_middleware(refuse_async),
):
    for kind in (handler, procedures):
        inner = App()
        add(inner)
        kind(inner)
        app.mount(f"/middleware{len(names)}", inner)
        names.append(f"/middleware{len(names)}/{kind.__name__}")


async def nested(refused: None = Depends(async_guard)) -> None:
    """Has the guard one step further down."""


async def waits() -> None:
    """A dependency that never ends."""
    await asyncio.Event().wait()


async def annotated(s: WebTransportSession, x: Annotated[None, Depends(guard)]) -> None: ...
async def by_default(s: WebTransportSession, x: None = Depends(guard)) -> None: ...
async def unannotated(s: WebTransportSession, x=Depends(guard)) -> None: ...
async def anything(s: WebTransportSession, x: Any = Depends(async_guard)) -> None: ...
async def optional(s: WebTransportSession, x: Annotated[None, Depends(guard)] | None = None): ...
async def below(s: WebTransportSession, x: None = Depends(nested)) -> None: ...
async def in_query(s: WebTransportSession, x: int = Query(1, ge=5)) -> None: ...
async def in_header(s: WebTransportSession, x_key: Annotated[str, Header()]) -> None: ...
async def in_cookie(s: WebTransportSession, key: str = Cookie()) -> None: ...
async def in_path(s: WebTransportSession, number: int = InPath(ge=5)) -> None: ...


for one in (
    annotated, by_default, unannotated, anything, optional, below, in_query, in_header, in_cookie,
):  # fmt: skip
    app.webtransport(f"/{one.__name__}")(one)
    names.append(f"/{one.__name__}?x=4")
app.webtransport("/path/{number}")(in_path)
app.webtransport("/guarded", dependencies=[Depends(guard)])(member)
app.webtransport_rpc("/guarded_procedures", dependencies=[Depends(async_guard)])
names += ["/path/4", "/path/a", "/guarded", "/guarded_procedures"]

slow = App()
slow.middleware(Timeout(0.01))
slow.webtransport("/handler", dependencies=[Depends(waits)])(member)
app.mount("/slow", slow)
names.append("/slow/handler")

free = App()
free.webtransport("/member")(member)
app.mount("/free", free)


@app.get("/names")
def listed() -> list[str]:
    """The paths."""
    return names
