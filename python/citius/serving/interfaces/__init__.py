"""Interfaces: what a worker serves, whatever it is written against.

``citius.App`` is an :class:`Application` itself; for what other interfaces call an application there
is a module here that makes one of it. Only what happens once per process is here: requests go from
the gateway (``crates/citius-py/src/gateway/``) straight to the application.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Asgi, Native, Wsgi
    from citius.web.pool import BlockingPool

    Gateway: TypeAlias = Native | Asgi | Wsgi


class Application(Protocol):
    """What ``server.Service`` asks of an application."""

    @property
    def needs_loop(self) -> str:
        """Why it cannot be served without an event loop; empty if it can."""
        ...

    def freeze(self, make_pool: Callable[[], BlockingPool]) -> Gateway:
        """The gateway to it; ``make_pool`` is called if it needs threads."""
        ...

    async def start(self) -> None:
        """Do what comes before the first request; an exception ends the start."""
        ...

    async def stop(self) -> None:
        """Do what comes after the last request."""
        ...
