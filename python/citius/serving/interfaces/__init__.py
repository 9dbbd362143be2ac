"""Interfaces: adapters from native, ASGI and WSGI applications to what a worker serves.

``citius.App`` is an :class:`Application` itself; for each other interface a module here makes one of its
applications. Only what happens once per process is here: requests go from
the gateway (``crates/citius-py/src/gateway/``) straight to the application.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Asgi, Native, Wsgi
    from citius.web.execution.thread_pool import BlockingPool

    Gateway: TypeAlias = Native | Asgi | Wsgi


class Application(Protocol):
    """What ``service.Service`` requires of an application."""

    @property
    def needs_loop(self) -> str:
        """Why it cannot be served without an event loop; empty if it can."""
        ...

    def freeze(self, make_pool: Callable[[], BlockingPool]) -> Gateway:
        """Make its gateway; ``make_pool`` is called if it needs threads."""
        ...

    async def start(self) -> None:
        """Run the start-up hooks; an exception ends the start."""
        ...

    async def stop(self) -> None:
        """Run the shutdown hooks."""
        ...
