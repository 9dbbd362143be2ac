"""The host without an event loop, for applications whose handlers are all ``def``.

The reactor blocks in its own epoll. Python calls handlers of signals in its thread, which may be in a
handler that does not return: the drain's deadline is a thread, and ``SIGALRM`` is the application's.
"""

from __future__ import annotations

from _thread import start_new_thread
from threading import Event
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.process import lifeline, signals

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from citius.serving.service import Service


def run(service: Service) -> None:
    """Start, serve until a signal, drain, stop.

    Raises:
        ConfigError: The application needs a loop.
        Exception: What a start-up hook raised.
    """
    complete(service.start(), "a start-up hook")
    reactor = service.open(None)
    ended = Event()
    draining = False

    def stop() -> None:
        nonlocal draining
        signals.end_after(signals.STUCK_S if draining else service.config.drain_s + signals.GRACE_S)
        if not draining:
            draining = True
            start_new_thread(cut_late, ())  # `threading` takes a lock that this thread may have
            service.drain(reactor.stop)

    def interrupt() -> None:
        if draining:
            cut()
        else:
            stop()

    def cut() -> None:
        signals.end_after(signals.STUCK_S)
        service.cut(reactor.stop)

    def cut_late() -> None:
        if not ended.wait(service.config.drain_s):
            cut()

    def call(act: Callable[[], object]) -> None:
        act()

    def every_second() -> None:
        stops.install()  # the application may have set handlers
        if service.heartbeat_interval_s is not None:
            service.heartbeat()

    heard = {"SIGTERM": stop, "SIGINT": interrupt, "SIGQUIT": cut}
    stops = signals.StopSignals(heard, call, service.config.drain_s)
    stops.install()
    lifeline.on_end(stop)
    try:
        reactor.run(every_second)
    finally:
        ended.set()
        signals.acted()
        stops.restore()
        reactor.close()
        complete(service.stop(), "a shutdown hook")


def complete(coroutine: Coroutine[Any, Any, None], what: str) -> None:
    """Run a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    coroutine.close()
    raise ConfigError(f"{what} waits for an event loop, and --loop none has none; use --loop auto")
