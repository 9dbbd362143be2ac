"""Tasks that wait for news: each has a future of its own, so that one that leaves takes no other with it."""

from __future__ import annotations

import asyncio


class Wakeups:
    """Tasks that wait until something may have changed, and look again then."""

    __slots__ = ("_futures",)

    def __init__(self) -> None:
        self._futures: set[asyncio.Future[None]] = set()

    async def wait(self) -> None:
        """Wait for the next ``wake``."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.add(future)
        try:
            await future
        finally:
            self._futures.discard(future)

    def wake(self) -> None:
        """Wake all that wait now."""
        for future in self._futures:
            if not future.done():
                future.set_result(None)
