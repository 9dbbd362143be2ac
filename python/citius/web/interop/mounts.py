"""ASGI applications below a prefix of a native one: routes for every method, WebSockets, and their lifespan.

``scope["root_path"]`` is the prefix, ``scope["path"]`` the whole path, as ASGI has it. Tests:
``tests/interop/test_mounts.py``, ``tests/frameworks/test_mounts.py``.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from citius._core import Request, Response, WebSocket
from citius.errors import ConnectionClosed
from citius.web.application.lifecycle import Hooks
from citius.web.declarations.checks import describe_application
from citius.web.interop.calls import respond
from citius.web.interop.lifespan import Lifespan
from citius.web.interop.scopes import scope_of
from citius.web.routing.declared_routes import Operation, Route, SocketRoute

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from citius.web.interop.scopes import ASGIApplication, Message

# Seconds that work after responses gets when the application stops.
_DRAIN_S = 10.0


class ASGIMount:
    """An ASGI application at a prefix; empty: all that no other route is for."""

    def __init__(
        self, prefix: str, app: ASGIApplication, *, around: ASGIApplication | None = None
    ) -> None:
        self._prefix = prefix
        self._app = app
        # What requests go to; the lifespan is the application's own.
        self._called = app if around is None else around
        self._state: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def routes(self) -> list[Route]:
        """For all methods of the prefix and what is below it."""

        async def mounted(request: Request, _path: str) -> Response:
            scope = scope_of(request, "http", self._prefix)
            scope["state"] = self._state.copy()
            scope["extensions"] = {"http.response.trailers": {}}
            return await respond(self._called, scope, request, self._tasks)

        async def mounted_at(request: Request) -> Response:
            return await mounted(request, "")

        operation = Operation(name=None, include_in_schema=False)
        return [
            Route(
                "*", pattern, named(handler, self._app), "async", stream=True, operation=operation
            )
            for pattern, handler in below(self._prefix, mounted_at, mounted)
        ]

    def sockets(self) -> list[SocketRoute]:
        """For WebSockets at the prefix and below it."""

        async def mounted(socket: WebSocket, _path: str) -> Response | None:
            scope = scope_of(socket.request, "websocket", self._prefix)
            scope["state"] = self._state.copy()
            scope["subprotocols"] = list(socket.subprotocols)
            scope["extensions"] = {"websocket.http.response": {}}
            return await _Socket(socket).serve(self._app, scope, self._tasks)

        async def mounted_at(socket: WebSocket) -> Response | None:
            return await mounted(socket, "")

        return [
            SocketRoute(pattern, named(handler, self._app), "async")
            for pattern, handler in below(self._prefix, mounted_at, mounted)
        ]

    def hooks(self) -> Hooks:
        """Its start-up and shutdown."""

        @asynccontextmanager
        async def lifespan(_app: object) -> AsyncGenerator[None]:
            self._state.clear()
            messages = Lifespan(self._app, self._state, "auto")
            await messages.start()
            yield
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_DRAIN_S)
            await messages.stop()

        return Hooks(lifespan)


def below(prefix: str, at: Any, under: Any) -> list[tuple[str, Any]]:
    """The patterns of a prefix and all that is below it, with what each is for."""
    return [(prefix or "/", at), (prefix + "/{_path:path}", under)]


def named(handler: Any, app: object) -> Any:
    """The handler, called as the application that it is for in messages and lists."""
    handler.__qualname__ = handler.__name__ = f"mounted {describe_application(app)}"
    handler._citius_mounted = app
    return handler


def keeps(route: Route, path: str, *, if_unknown: bool) -> bool:
    """Whether a path belongs to the application that a route mounts.

    Args:
        route: The route; it may be one that mounts nothing.
        path: The path.
        if_unknown: What holds of an application that does not say which routes it has.
    """
    app = getattr(route.handler, "_citius_mounted", None)
    prefix = route.pattern.removesuffix("/{_path:path}")
    if app is None or prefix == route.pattern or not path.startswith(prefix + "/"):
        return False
    while not hasattr(app, "routes") and hasattr(app, "app"):
        app = app.app  # middleware around it
    if not hasattr(app, "routes"):
        return if_unknown
    return _has_path(app.routes, path.removeprefix(prefix))


def _has_path(routes: Any, path: str) -> bool:
    """Whether there is a route for a path in the list of a Starlette or FastAPI application."""
    for one in routes:
        own = getattr(one, "path", None)
        if own == path or (own == "" and _has_path(getattr(one, "routes", None) or (), path)):
            return True
    return False


class _Socket:
    """One WebSocket of a mounted application."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._has_connected = False
        self._refusal: Response | None = None
        self._gone = asyncio.Event()

    async def serve(
        self, app: ASGIApplication, scope: dict[str, Any], tasks: set[asyncio.Task[None]]
    ) -> Response | None:
        """Call the application; what it returns is a refusal."""
        task = asyncio.get_running_loop().create_task(_run(app, scope, self._receive, self._send))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        try:
            # Not cancelled with the handler: the application hears that the client has left.
            await asyncio.wait([task])
        except asyncio.CancelledError:
            self._gone.set()
            self._settle(False)
            raise
        error = task.exception()
        if error is not None:
            raise error
        if self._refusal is None and not self._accepted.done():
            raise RuntimeError("the application ended without accepting or closing the WebSocket")
        return self._refusal

    def _settle(self, accepted: bool) -> None:
        if not self._accepted.done():
            self._accepted.set_result(accepted)

    async def _receive(self) -> Message:
        if not self._has_connected:
            self._has_connected = True
            return {"type": "websocket.connect"}
        if not await asyncio.shield(self._accepted) or self._gone.is_set():
            return {"type": "websocket.disconnect", "code": 1006, "reason": ""}
        try:
            message = await self._socket.receive()
        except ConnectionClosed:
            code = self._socket.close_code or 1006
            reason = self._socket.close_reason or ""
            return {"type": "websocket.disconnect", "code": code, "reason": reason}
        if isinstance(message, str):
            return {"type": "websocket.receive", "text": message}
        return {"type": "websocket.receive", "bytes": message}

    async def _send(self, message: Message) -> None:
        kind: str = message["type"]
        if not self._accepted.done():
            return await self._decide(kind, message)
        if kind == "websocket.send":
            text: str | None = message.get("text")
            await self._socket.send(text if text is not None else message["bytes"])
        elif kind == "websocket.close":
            await self._socket.close(message.get("code") or 1000, message.get("reason") or "")
        elif kind == "websocket.http.response.body" and self._refusal is not None:
            self._refusal.body = cast("bytes", self._refusal.body) + bytes(message.get("body", b""))
        else:
            raise RuntimeError(f"expected 'websocket.send' or 'websocket.close', got {kind!r}")

    async def _decide(self, kind: str, message: Message) -> None:
        """The first message: whether the client gets its WebSocket."""
        headers = [
            (bytes(name).decode("latin-1"), bytes(value).decode("latin-1"))
            for name, value in message.get("headers") or ()
        ]
        if kind == "websocket.accept":
            await self._socket.accept(message.get("subprotocol"), headers)
            self._settle(True)
        elif kind == "websocket.close":
            self._refusal = Response(b"", 403)
            self._settle(False)
        elif kind == "websocket.http.response.start":
            self._refusal = Response(b"", message["status"], headers)
            self._settle(False)
        else:
            raise RuntimeError(f"expected 'websocket.accept' or 'websocket.close' before {kind!r}")


async def _run(app: ASGIApplication, scope: dict[str, Any], receive: Any, send: Any) -> None:
    await app(scope, receive, send)
