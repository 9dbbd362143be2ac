"""Roles of a shared connection: one caller reads, one writes, the others sleep until a role is released.

A caller may be interrupted wherever it waits (by ``gevent.Timeout``, by a greenlet's ``kill``, by a signal
handler that raises) and between any two steps. ``Role.share`` therefore takes a role inside the ``try`` whose
``finally`` releases it, and releasing a role that the caller does not hold has no effect. Whenever a role is
free, the first waiter of its queue has been woken. Tests: tests/rpc/test_waiting.py.
"""

from __future__ import annotations

from _thread import allocate_lock
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from citius.rpc.deadlines import left

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.rpc.synchronous import Call

_T = TypeVar("_T")


class Waiter:
    """One wait of one caller."""

    __slots__ = ("_lock", "call")

    def __init__(self, call: Call | None = None) -> None:
        self.call = call
        # Held until it is woken; made when it first has to sleep.
        self._lock: Any = None

    def is_done(self) -> bool:
        """Whether the response has come that it waits for."""
        return self.call is not None and self.call.request.is_done

    def arm(self) -> None:
        """Get ready to sleep: a wake-up from here on is not lost."""
        if self._lock is None:
            lock = allocate_lock()
            lock.acquire()
            self._lock = lock

    def sleep(self, timeout_s: float) -> None:
        """Wait for ``wake``; after ``arm`` only."""
        self._lock.acquire(timeout=timeout_s)

    def wake(self) -> None:
        """Wake its caller, which then checks its condition again."""
        if self._lock is not None:
            with suppress(RuntimeError):  # it does not sleep
                self._lock.release()


class Role:
    """The right to read or to write, which one caller holds at a time; others sleep until it is released."""

    def __init__(self, state: Any, on_leave: Callable[[], object] | None = None) -> None:
        self._state = state
        self._on_leave = on_leave
        self._holder: Waiter | None = None
        self._queue: dict[Waiter, None] = {}

    def is_free(self) -> bool:
        """Whether no caller holds it."""
        return self._holder is None

    def share(self, act: Callable[[Waiter], _T], call: Call | None = None) -> _T:
        """Run ``act``, which may ``take`` the role and ``sleep`` for it; release the role at its end."""
        waiter = Waiter(call)
        try:
            return act(waiter)
        finally:
            try:
                self._leave(waiter)
            except BaseException:  # interrupted: again, because it may not have been completed
                self._leave(waiter)
                raise

    def take(self, waiter: Waiter) -> bool:
        """Take the role if it is free; whether ``waiter`` holds it now."""
        with self._state:
            if self._holder is None:
                self._holder = waiter
            return self._holder is waiter

    def sleep(self, waiter: Waiter, deadline: float | None) -> None:
        """Wait until the role is released, or the response has come that ``waiter`` waits for."""
        waiter.arm()
        with self._state:
            self._queue[waiter] = None
        # From here on a release wakes it; the role may have been released before.
        if self._holder is not None and not waiter.is_done():
            waiter.sleep(left(deadline))

    def wake_all(self) -> None:
        """Wake all sleeping callers, which then check their conditions again."""
        for waiter in list(self._queue):
            waiter.wake()

    def _leave(self, waiter: Waiter) -> None:
        """Release the role if ``waiter`` holds it, leave the queue, and wake the next waiter."""
        following = None
        with self._state:
            self._queue.pop(waiter, None)
            if self._holder is waiter:
                self._holder = None
            # Also if it was free before: this waiter may have been woken to take it and does not do so. A
            # waiter that has its response already calls this method next.
            if self._holder is None:
                following = next(iter(self._queue), None)
        if following is not None:
            following.wake()
        if self._on_leave is not None:
            self._on_leave()
