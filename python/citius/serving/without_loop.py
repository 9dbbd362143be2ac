"""What signals do to a worker without an event loop, and its turns: hosts/standalone.py, hosts/late.py.

Python calls handlers of signals in the reactor's thread, which may be in a handler that does not return: the
drain's deadline is a thread, and ``SIGALRM`` is the application's. Tests: ``tests/hosts/``.
"""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Any

from citius.coroutines import result_at_once
from citius.errors import ConfigError
from citius.observability.observe import HEARTBEAT_INTERVAL_S
from citius.process import lifeline, signals

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from citius._core import Reactor
    from citius.serving.service import Service


class Standalone:
    """What signals do to a worker without a loop, and its turns."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._reactor: Reactor | None = None
        self._ended = Event()
        self._late = allocate_lock()
        """Taken while the thread is there that cuts what the drain has left."""
        self.is_draining = False
        self.is_drained = False
        """The last connection is gone, or cut."""
        self.cut_at = 0.0
        """When the drain's deadline is."""
        self.on_drained: Callable[[], object] = bool
        """Called then, whichever thread cuts."""
        heard = {"SIGTERM": self._stop, "SIGINT": self._interrupt, "SIGQUIT": self._cut}
        self.stops = signals.StopSignals(heard, _call, service.config.drain_s)

    def hear(self) -> None:
        """Hear signals from now on."""
        self.stops.install()
        lifeline.on_end(self._stop)

    def turn(self, reactor: Reactor) -> None:
        """Serve until it is stopped, or a loop is to turn the reactor."""
        self._reactor = reactor
        if self.is_draining:  # the signal came first
            self._drain()
        reactor.run(
            self._beat, min(HEARTBEAT_INTERVAL_S, self._service.heartbeat_interval_s or 1.0)
        )

    def give_up(self) -> float:
        """A loop has heard the signals since; returns the seconds that are left of a drain."""
        self._ended.set()
        signals.acted()
        return max(0.0, self.cut_at - monotonic())

    def finish(self, reactor: Reactor) -> None:
        """Call the shutdown hooks."""
        self._ended.set()
        # The interpreter of CPython 3.11 crashes if it ends before a thread of it has begun.
        self._late.acquire(timeout=signals.STUCK_S)
        signals.acted()
        self.stops.restore()
        reactor.close()
        complete(self._service.stop(), "a shutdown hook")

    def _stop(self) -> None:
        drain_s = self._service.config.drain_s
        signals.end_after(signals.STUCK_S if self.is_draining else drain_s + signals.GRACE_S)
        if not self.is_draining:
            self.is_draining = True
            self.cut_at = monotonic() + drain_s
            if self._reactor is not None:
                self._drain()

    def _drain(self) -> None:
        if self._late.acquire(blocking=False):
            # `threading` takes a lock that this thread may have.
            start_new_thread(self._cut_late, ())
        self._service.drain(self._drained)

    def _interrupt(self) -> None:
        if self.is_draining:
            self._cut()
        else:
            self._stop()

    def _cut(self) -> None:
        signals.end_after(signals.STUCK_S)
        if self._reactor is None:
            self.is_draining = True  # what is started ends at once
        else:
            self._service.cut(self._drained)

    def _cut_late(self) -> None:
        try:
            if not self._ended.wait(max(0.0, self.cut_at - monotonic())):
                self._cut()
        finally:
            self._late.release()

    def _drained(self) -> None:
        self.is_drained = True
        self._service.reactor.stop()
        self.on_drained()

    def _beat(self) -> None:
        self.stops.install()  # the application may have set handlers
        if self._service.heartbeat_interval_s is not None:
            self._service.heartbeat()


def _call(act: Callable[[], object]) -> None:
    act()


def complete(coroutine: Coroutine[Any, Any, None], what: str) -> None:
    """Run a coroutine that never suspends."""
    text = f"{what} waits for an event loop, and --loop none has none; use --loop auto"
    result_at_once(coroutine, ConfigError(text))
