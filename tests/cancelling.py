"""A coroutine that is cancelled at the await of one's choice, before or after what it waits for has come.

``Task.cancel`` in a loop of ``sleep(0)`` meets an await by chance; here each is met, and also the turn in
which the result is there and is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from typing import Any

AWAITS_MAX = 200
WAIT_S = 20.0


class Cancelled:
    """Runs ``coroutine``; its suspension of this number (from 1) ends with ``error``."""

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Any],
        number: int,
        *,
        after: bool,
        error: type[BaseException] = asyncio.CancelledError,
    ) -> None:
        self._coroutine, self._number, self._after = coroutine, number, after
        self._error = error
        self.met = False

    def __await__(self) -> Generator[Any, Any, Any]:
        """Step it, and pass on what it waits for."""
        count, error = 0, None
        while True:
            try:
                if error is None:
                    future = self._coroutine.send(None)
                else:
                    raised, error = error, None
                    future = self._coroutine.throw(raised)
            except StopIteration as end:
                return end.value
            count += 1
            is_here = count == self._number
            self.met = self.met or is_here
            if is_here and not self._after:
                if future is not None:
                    future._asyncio_future_blocking = False
                    future.cancel()
                error = self._error()
                continue
            try:
                if future is not None:
                    future._asyncio_future_blocking = True
                yield future
            except BaseException as came:
                error = came
            else:
                error = self._error() if is_here else None


async def at_every_await(use: Callable[[], Coroutine[Any, Any, Any]]) -> AsyncIterator[str]:
    """Run ``use`` again and again, cancelled at another await each time; gives the place each time."""
    for after in (False, True):
        for number in range(1, AWAITS_MAX):
            cancelled = Cancelled(use(), number, after=after)

            async def run(one: Awaitable[Any] = cancelled) -> None:
                await one

            async with asyncio.timeout(WAIT_S):
                task = asyncio.ensure_future(run())
                await asyncio.wait([task])
            if not task.cancelled():
                task.result()
            yield f"await {number}, {'after' if after else 'before'} its result"
            if not cancelled.met:
                break
        else:
            raise AssertionError("it has too many awaits")
