"""The host without an event loop, for applications whose handlers are all ``def``.

The reactor blocks in its own epoll (without_loop.py). With ``--loop auto`` a loop may take over (late.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.serving.without_loop import Standalone, complete

if TYPE_CHECKING:
    from citius.serving.service import Service


def run(service: Service) -> None:
    """Start, serve until a signal, drain, stop.

    Raises:
        ConfigError: The application needs a loop.
        Exception: What a start-up hook raised.
    """
    complete(service.start(), "a start-up hook")
    reactor = service.open(None)
    host = Standalone(service)
    host.hear()
    try:
        host.turn(reactor)
    finally:
        host.finish(reactor)
