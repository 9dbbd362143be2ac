"""Timeouts: a handler that takes too long is cancelled, and its client gets 503.

For ``async def`` handlers: nothing can stop a ``def``, whose routes are left alone. Tests:
tests/middleware/test_timeouts.py.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from citius.errors import ConfigError, ServiceUnavailable
from citius.web.middleware.base import AnyMiddleware, AsyncNext, Middleware
from citius.web.signature import kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from citius._core import Request


class Timeout(Middleware):
    """Cancel handlers that take longer.

    Args:
        seconds: How long a handler may take until it returns its response; a stream may take longer.
        routes: Other times for routes, by their paths as they are declared; ``None`` for no limit.

    Raises:
        ConfigError: A time that is not above 0.
    """

    def __init__(
        self, seconds: float | None, *, routes: Mapping[str, float | None] | None = None
    ) -> None:
        self._seconds = seconds
        self._routes = dict(routes or {})
        for given in (seconds, *self._routes.values()):
            if given is not None and given <= 0:
                raise ConfigError(f"Timeout: expected seconds above 0, got {given}")

    def limit_of(self, pattern: str, handler: Callable[..., object]) -> str | None:
        """Return the time."""
        seconds = self._seconds_of(pattern, handler)
        return None if seconds is None else f"{seconds:g} s"

    def _seconds_of(
        self, pattern: str | None, handler: Callable[..., object] | None
    ) -> float | None:
        seconds = self._seconds if pattern is None else self._routes.get(pattern, self._seconds)
        if handler is None or kind_of(handler, blocking=False) != "async":
            return None
        return seconds

    def bind(
        self, method: str, pattern: str | None, handler: Callable[..., object] | None
    ) -> AnyMiddleware | None:
        """Leave handlers alone that cannot be cancelled, or have no limit."""
        seconds = self._seconds_of(pattern, handler)
        if seconds is None:
            return None

        async def within(request: Request, next: AsyncNext) -> object:
            timeout = asyncio.timeout(seconds)
            try:
                async with timeout:
                    return await next(request)
            except TimeoutError:
                if not timeout.expired():
                    raise
            raise ServiceUnavailable(f"no response within {seconds:g} s", {"retry-after": "1"})

        return within
