"""The host of ``--loop auto`` where nothing that is declared uses an event loop: it is made when asked for.

asyncio and uvloop cost a worker a quarter of its memory and of its start. So it begins as the host without a
loop (standalone.py). The loop is made on the same thread when something asks for it: a handler that returns
an asynchronous generator, a client, whatever imports asyncio. From that moment on it is the running loop,
within the very call that asked; when the turn is over it runs, and turns the reactor (asyncio.py).

In: a service that is not open. Tests: ``tests/hosts/test_late_loop.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from citius.serving.late_loop import LateLoop, hearing_of_asyncio
from citius.serving.without_loop import Standalone, complete

if TYPE_CHECKING:
    from citius.serving.service import Service


def run(service: Service) -> None:
    """Start, serve until a signal, drain, stop; with a loop as soon as one is asked for."""
    host, late = Standalone(service), LateLoop(service)
    host.hear()
    with hearing_of_asyncio(late.asyncio_is_imported):
        try:
            complete(service.start(), "a start-up hook")
            reactor = late.reactor = service.open(None, late.make)
        except BaseException:
            host.stops.restore()
            raise
        try:
            host.turn(reactor)
        except BaseException:
            host.finish(reactor)
            raise
    if not late.is_wanted:
        return host.finish(reactor)
    late.make()  # unless it is there: another thread has imported asyncio
    late.stand_down()
    from citius.serving.hosts import asyncio

    assert late.loop is not None, "it has been made"
    asyncio.run(service, late.loop, host)
