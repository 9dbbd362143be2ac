"""The host without an event loop, for applications whose handlers are all ``def``.

The reactor blocks in its own epoll; the drain deadline is an interval timer of the process.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from citius.errors import ConfigError
from citius.process import lifeline, signals

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import FrameType
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
    draining = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal draining
        # The reactor calls handlers on this thread: it may be in one that does not return.
        signals.end_after(signals.STUCK_S if draining else service.config.drain_s + signals.GRACE_S)
        if not draining:
            draining = True
            signal.setitimer(signal.ITIMER_REAL, max(service.config.drain_s, 1e-3))
            service.drain(reactor.stop)
        elif number == signal.SIGINT:
            service.cut(reactor.stop)

    def cut(number: int, frame: FrameType | None) -> None:
        signals.end_after(signals.STUCK_S)
        service.cut(reactor.stop)

    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, stop),
        signal.SIGINT: signal.signal(signal.SIGINT, stop),
        signal.SIGQUIT: signal.signal(signal.SIGQUIT, cut),
        signal.SIGALRM: signal.signal(signal.SIGALRM, cut),
    }
    signals.unblock(before)
    lifeline.on_end(lambda: stop(signal.SIGTERM, None))
    try:
        reactor.run(service.heartbeat if service.heartbeat_interval_s is not None else None)
    finally:
        signals.acted()
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
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
