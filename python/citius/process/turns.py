"""How an event loop turns a reactor.

On Linux a reactor has an epoll descriptor, and the loop waits for it beside its own. Elsewhere, and with
``--poller asyncio``, it has none: it asks for its turns, and the loop owns the sockets of clients
(serving/transports.py). Tests: ``tests/hosts/test_poller.py``.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from citius._core import Reactor


def has_epoll() -> bool:
    """Whether reactors of this system can poll the kernel."""
    return sys.platform == "linux"


def is_hosted(poller: str) -> bool:
    """Whether reactors have no descriptor: ``poller`` is ``epoll``, ``asyncio`` or ``auto``."""
    if poller == "auto":
        poller = os.environ.get("CITIUS_POLLER", "auto")
    return poller == "asyncio" or not has_epoll()


class TurnScheduler:
    """One reactor's turns on one loop.

    Args:
        loop: The loop.
        hosted: The reactor has no descriptor: it is made with this object as its ``host``.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, *, hosted: bool) -> None:
        self.loop = loop
        self.is_hosted = hosted
        self._turn: Callable[[], object] | None = None
        self._fd = -1
        self._is_scheduled = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def host(self) -> TurnScheduler | None:
        """The ``host`` of the reactor's settings."""
        return self if self.is_hosted else None

    def start(self, reactor: Reactor, turn: Callable[[], object]) -> None:
        """Call ``turn`` whenever ``reactor`` has something to do."""
        self._turn = turn
        if self.is_hosted:
            self.wake()
        else:
            self._fd = reactor.fileno()
            self.loop.add_reader(self._fd, turn)

    def stop(self) -> None:
        """Call it no more; the reactor is let go."""
        self._turn = None
        if self._timer is not None:
            self._timer.cancel()
        if self._fd >= 0:
            self.loop.remove_reader(self._fd)
            self._fd = -1

    def forget(self) -> None:
        """Let the reactor go; the loop is closed."""
        self._turn = None

    # --- what a reactor without a descriptor calls ---

    def wake(self) -> None:
        """Turn soon; callable from any thread."""
        if self._is_scheduled:
            return  # the turn that comes sees what this is about
        self._is_scheduled = True
        with suppress(RuntimeError):  # the loop is closed: there will be no turn
            self.loop.call_soon_threadsafe(self._do_scheduled_turn)

    def turn_later(self, seconds: float) -> None:
        """Turn in so many seconds, instead of at the time that was given before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_later(seconds, self._do_turn)

    def _do_scheduled_turn(self) -> None:
        self._is_scheduled = False
        self._do_turn()

    def _do_turn(self) -> None:
        if self._turn is not None:
            self._turn()
