"""A deadline that counts the time in which the event loop runs.

A handler that keeps the loop for longer than a deadline makes every reply late that came meanwhile. A
time-out of ``asyncio`` expires before such a reply is read, and an engine would be taken for absent because
its client stood still. Tests: ``tests/cluster/test_stalls.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from types import TracebackType

_SLICES: Final = 4
# A slice during which the loop stood still for that part of it does not count.
_STALLED: Final = 0.25
# Slices that may not count. Origin: a deadline passes after five times its length, however busy the loop is.
_STALLS_MAX: Final = 4 * _SLICES
# Turns of the loop between the last slice and the end: one that reads, one that wakes the client, one for it.
_TURNS: Final = 3


class Patience:
    """A block that has so many seconds in which the loop runs; ``TimeoutError`` after them."""

    __slots__ = (
        "_cancelling", "_due", "_handle", "_is_expired", "_left", "_loop", "_slice_s", "_stalls",
        "_task",
    )  # fmt: skip

    _task: asyncio.Task[object]
    _loop: asyncio.AbstractEventLoop
    _handle: asyncio.Handle

    def __init__(self, wait_s: float) -> None:
        self._slice_s = wait_s / _SLICES
        self._left, self._stalls = _SLICES, 0
        self._due = 0.0
        self._is_expired = False
        self._cancelling = 0

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None, "it is entered in a task"
        self._task, self._cancelling = task, task.cancelling()
        self._loop = asyncio.get_running_loop()
        self._next_slice()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._handle.cancel()
        if self._is_expired:
            is_ours = self._task.uncancel() <= self._cancelling
            if is_ours and kind is not None and issubclass(kind, asyncio.CancelledError):
                raise TimeoutError from error

    def _next_slice(self) -> None:
        self._due = self._loop.time() + self._slice_s
        self._handle = self._loop.call_at(self._due, self._on_slice)

    def _on_slice(self) -> None:
        late_s = self._loop.time() - self._due
        if late_s > _STALLED * self._slice_s and self._stalls < _STALLS_MAX:
            self._stalls += 1
        else:
            self._left -= 1
        if self._left:
            self._next_slice()
        else:
            self._left = _TURNS
            self._handle = self._loop.call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._left -= 1
        if self._left:
            self._handle = self._loop.call_soon(self._on_turn)
        else:
            self._is_expired = True
            self._task.cancel()
