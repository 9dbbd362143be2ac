"""``Middleware``: the class of middleware that has two halves, and the types of all middleware.

A function of ``(request, next)`` is middleware too. The class is for middleware that serves ``def`` and
``async def`` handlers alike: compose.py calls ``before`` and ``after`` around whatever is inside, in a
coroutine where there is one and without one elsewhere. Tests: tests/middleware/test_composition.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from citius._core import Request, Response

Next: TypeAlias = Callable[[Request], Response]
"""What a ``def`` middleware gets to call what is inside."""

AsyncNext: TypeAlias = Callable[[Request], Awaitable[Response]]
"""What an ``async def`` middleware gets, to be awaited."""


class Middleware:
    """Middleware in two halves, either of which may be ``async def``."""

    def before(self, request: Request) -> object:
        """Return a ``Response`` in place of what is inside, or ``None`` to call it."""

    def after(self, request: Request, response: Response) -> object:
        """Return the response of what is inside, changed or replaced.

        Not called with a response of ``before``.
        """
        return response

    def bind(
        self, method: str, pattern: str | None, handler: Callable[..., Any] | None
    ) -> AnyMiddleware | None:
        """Return what this middleware is for one route, ``None`` if it leaves the route alone.

        Called once for each route when the application starts.

        Args:
            method: The route's method; empty for paths and methods without a route.
            pattern: The route's path with the prefixes of mounts; ``None`` for those.
            handler: What the route calls.
        """
        return self

    @property
    def steps(self) -> tuple[Callable[..., Any], ...]:
        """The functions that are called for a request; a coroutine function needs an event loop."""
        return self.before, self.after

    @property
    def is_async(self) -> bool:
        """Whether a step is a coroutine function."""
        return any(map(inspect.iscoroutinefunction, self.steps))


AnyMiddleware: TypeAlias = (
    Middleware
    | Callable[[Request, Next], object]
    | Callable[[Request, AsyncNext], Awaitable[object]]
)
"""Whatever ``App.middleware`` takes."""
