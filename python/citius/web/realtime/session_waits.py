"""What waits in a WebTransport session, and its timers. Tests: ``tests/unit/test_webtransport_queues.py``."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

    from citius._core import _WebTransport as Core  # pyright: ignore[reportPrivateUsage]

_RESTART = 1012
"""What sessions are closed with when the server drains; as with WebSockets."""


def running_loop() -> asyncio.AbstractEventLoop:
    """The event loop. Middleware knows sessions by their class, in workers without a loop too."""
    from asyncio import get_running_loop

    return get_running_loop()


class Waiters:
    """Coroutines that wait until something has changed."""

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[None]] = []

    async def wait(self) -> None:
        """Wait for the next wake-up."""
        future = running_loop().create_future()
        self._futures.append(future)
        try:
            await future
        except BaseException:
            with suppress(ValueError):
                self._futures.remove(future)
            raise

    def wake(self) -> bool:
        """Let all of them look again; whether there were any."""
        futures, self._futures = self._futures, []
        waiting = [one for one in futures if not one.done()]
        for one in waiting:
            one.set_result(None)
        return bool(waiting)


class Upkeep:
    """The timers of a session."""

    __slots__ = ("_core", "_timers")

    def __init__(self, core: Core) -> None:
        self._core = core
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def begin(self) -> None:
        """Show now and then that the connection is in use, for QUIC ends one that is idle."""
        if idle_ms := self._core.limit("quic_idle_ms"):
            later = running_loop().call_later
            self._timers["ping"] = later(idle_ms / 3000, self._ping)

    def leave(self) -> None:
        """Close it after a while: the server stops."""
        after_s = self._core.limit("webtransport_drain_ms") / 1000
        later = running_loop().call_later
        self._timers["close"] = later(after_s, self._core.close, _RESTART, "")

    def end(self) -> None:
        """Do nothing any more."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _ping(self) -> None:
        self._core.ping()
        self.begin()
