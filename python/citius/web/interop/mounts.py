"""ASGI applications below a prefix of a native one: routes for every method, WebSockets, and their lifespan.

``scope["root_path"]`` is the prefix, ``scope["path"]`` the whole path, as ASGI has it. Tests:
``tests/interop/test_mounts.py``, ``tests/frameworks/test_mounts.py``.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from citius._core import Request, Response, WebSocket  # noqa: TC001  # annotations of handlers
from citius.web.application.lifecycle import Hooks
from citius.web.declarations.checks import describe_application
from citius.web.interop.calls import respond
from citius.web.interop.lifespan import Lifespan
from citius.web.interop.scopes import scope_of
from citius.web.interop.socket_messages import SocketMessages
from citius.web.routing.declared_routes import Operation, Route, SocketRoute

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from citius.web.interop.scopes import ASGIApplication

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
            return await SocketMessages(socket, "websocket").serve(self._app, scope, self._tasks)

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
