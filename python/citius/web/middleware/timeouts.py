"""Timeouts: a handler that takes too long is cancelled, and its client gets 503.

What cannot be cancelled is a ``def`` on the event loop: the start fails, unless the application says that
these are left alone. A thread is not stopped, its client is told. Tests: tests/middleware/test_timeouts.py.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING

from citius.errors import ConfigError, ServiceUnavailable
from citius.web.declarations.checks import describe
from citius.web.declarations.type_kinds import deciding
from citius.web.middleware.base import AnyMiddleware, AsyncNext, Middleware, OnConnections
from citius.web.middleware.fields import NamedRoutes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from citius._core import Request, Response
    from citius.web.middleware.base import AsyncNextConnection, Connection, ConnectionMiddleware

    _Handler = Callable[..., object]


class Timeout(Middleware):
    """Bound the time of handlers; a client whose handler takes longer gets 503.

    An ``async def`` handler is cancelled. A ``blocking=True`` one goes on in its thread, without a client. A
    WebSocket has this time to be accepted.

    Args:
        seconds: How long a handler may take until it returns its response; a stream may take longer.
        routes: Other times for routes, by their paths as they are declared, or the prefixes of mounts;
            ``None`` for no limit.
        skip_def: Leave ``def`` handlers on the event loop alone, which nothing can stop; without it the
            start fails if there is one.

    Raises:
        ConfigError: A time that is not above 0.
    """

    def __init__(
        self,
        seconds: float | None,
        *,
        routes: Mapping[str, float | None] | None = None,
        skip_def: bool = False,
    ) -> None:
        self._seconds = seconds
        self._routes = dict(routes or {})
        self._named = NamedRoutes("Timeout(routes=…)", self._routes)
        self._skip_def = skip_def
        for given in (seconds, *self._routes.values()):
            if given is not None and not given > 0:
                raise ConfigError(f"Timeout: expected seconds above 0, got {given}")

    @property
    def steps(self) -> tuple[Callable[..., object], ...]:
        """What decides that there has to be an event loop."""
        return (_within,)

    @property
    def named_routes(self) -> NamedRoutes:
        """Those with a time of their own."""
        return self._named

    def limit_of_kind(self, kind: str, pattern: str, handler: _Handler) -> str | None:
        """Return the time."""
        seconds = self._seconds_of(pattern)
        return None if seconds is None or kind == "def" else f"{seconds:g} s"

    def _seconds_of(self, pattern: str | None) -> float | None:
        name = None if pattern is None else self._named.name_of(pattern)
        return self._seconds if name is None else self._routes[name]

    def bind_kind(
        self, kind: str, method: str, pattern: str | None, handler: _Handler | None
    ) -> AnyMiddleware | OnConnections | None:
        """Leave routes alone that have no limit.

        Raises:
            ConfigError: A handler cannot be stopped.
        """
        seconds = self._seconds_of(pattern)
        if seconds is None or handler is None:
            return None
        if kind == "def" and inspect.isasyncgenfunction(deciding(handler)):
            return None  # its call returns the stream
        if kind == "def":
            if not self._leaves_alone(pattern, handler):
                raise ConfigError(
                    f"Timeout of {seconds:g} s: {describe(handler)} of {pattern} is a `def` on the event "
                    "loop, which nothing can stop; make it `async def`, add blocking=True to its route, or "
                    f"write Timeout(…, routes={{{pattern!r}: None}}), or Timeout(…, skip_def=True) for all "
                    "of them"
                )
            return None
        if method == "WEBSOCKET":
            return OnConnections(_until_accepted(seconds))

        async def within(request: Request, next: AsyncNext) -> object:
            return await _within(seconds, request, next)

        return within

    def _leaves_alone(self, pattern: str | None, handler: _Handler) -> bool:
        """Whether a ``def`` goes without a limit: files and documentation are our own, and do not wait."""
        if handler.__module__ in ("citius.web.routing.static", "citius.web.openapi.pages"):
            return True
        return self._skip_def and pattern not in self._named


async def _within(seconds: float, request: Request, next: AsyncNext) -> object:
    timeout = asyncio.timeout(seconds)
    try:
        async with timeout:
            return await next(request)
    except TimeoutError:
        if not timeout.expired():
            raise
    raise _too_late(seconds)


def _until_accepted(seconds: float) -> ConnectionMiddleware:
    """A time-out for the time until a WebSocket is accepted or refused."""

    async def within(socket: Connection, next: AsyncNextConnection) -> Response | None:
        from citius.web.routing.websocket_chain import is_undecided

        timeout = asyncio.timeout(None)
        loop = asyncio.get_running_loop()

        def expire() -> None:
            if is_undecided(socket):
                timeout.reschedule(loop.time())

        timer = loop.call_later(seconds, expire)
        try:
            async with timeout:
                return await next(socket)
        except TimeoutError:
            if not timeout.expired():
                raise
        finally:
            timer.cancel()
        raise _too_late(seconds)

    return within


def _too_late(seconds: float) -> ServiceUnavailable:
    return ServiceUnavailable(f"no response within {seconds:g} s", {"retry-after": "1"})
