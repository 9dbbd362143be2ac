"""One object for each event loop that asks: futures and tasks belong to their loop.

A worker has a loop in each of its reactor threads (``--reactor-threads``). To the engine each loop is as a
node. Tests: ``tests/cluster/test_reactor_threads.py``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class ByLoop(Generic[T]):
    """What ``make`` makes, for each loop; that of a loop that was closed is forgotten.

    Args:
        make: Makes one, on its loop.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: dict[asyncio.AbstractEventLoop, T] = {}

    def here(self) -> T:
        """The one of the running loop."""
        loop = asyncio.get_running_loop()
        found = self._made.get(loop)
        if found is None:
            # It refers to its loop, so a weak dictionary would keep both.
            for other in [one for one in list(self._made) if one.is_closed()]:
                self._made.pop(other, None)
            found = self._made[loop] = self._make()
        return found

    def pop_here(self) -> T | None:
        """The one of the running loop, which is forgotten."""
        return self._made.pop(asyncio.get_running_loop(), None)

    def all(self) -> list[T]:
        """Those of all loops."""
        return list(self._made.values())
