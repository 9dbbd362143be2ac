"""What requests meet while an engine of their data is away: one wait, then none until it is tried again.

An engine that is away costs one wait of ``timeout_s``; for ``retry_s`` after it no request asks again. What
requests get meanwhile is a choice of each store, ``when_down``. Begin and end of an outage are logged once.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from citius.cluster.engines import EngineAway, without_credentials
from citius.cluster.stats import Stats
from citius.errors import ServiceUnavailable
from citius.observability import logging

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

_T = TypeVar("_T")

TIMEOUT_S: Final = 0.5
"""How long one request waits for an engine. Origin: some hundred times what it takes on the same network."""

RETRY_S: Final = 1.0
"""For how long an engine that did not respond is not asked again."""


# Where the exceptions of clients are defined.
_CLIENTS: Final = ("redis.", "citius.redis.")


class Away(Exception):
    """The engine did not respond, or not as it should."""


_giving_back: set[asyncio.Future[None]] = set()


def give_back(release: Coroutine[object, object, None]) -> asyncio.Task[None]:
    """Give back what was taken or may have been: a task that the caller's cancellation does not end.

    It takes ``TIMEOUT_S`` at most. Where it fails, what was taken ends by itself.
    """
    task = asyncio.get_running_loop().create_task(_given_back(release), name="citius-give-back")
    _giving_back.add(task)
    task.add_done_callback(_giving_back.discard)
    return task


async def _given_back(release: Coroutine[object, object, None]) -> None:
    with suppress(Exception):
        async with asyncio.timeout(TIMEOUT_S):
            await release


class Asker:
    """Commands to one engine, bounded in time.

    Args:
        what: What is in the engine, for the log and the responses of 503.
        engine: Its name.
        stats: Where outages are counted.
    """

    def __init__(
        self,
        what: str,
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
        engine: str = "redis",
        stats: Stats | None = None,
    ) -> None:
        self._what = what
        self._engine = engine
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._stats = stats or Stats()
        self._is_away = False
        self._asked_again_at = 0.0

    @property
    def is_away(self) -> bool:
        """Whether the engine did not respond when it was last asked."""
        return self._is_away

    async def ask(self, command: Callable[[], Awaitable[_T]]) -> _T:
        """What the engine says.

        Raises:
            Away: Nothing, or that it cannot.
        """
        if self._is_away and time.monotonic() < self._asked_again_at:
            raise Away
        try:
            async with asyncio.timeout(self._timeout_s):
                said = await command()
        except Exception as error:
            is_outage = isinstance(error, (OSError, EngineAway))  # TimeoutError is an OSError
            if not (is_outage or type(error).__module__.startswith(_CLIENTS)):
                raise
            self._asked_again_at = time.monotonic() + self._retry_s
            if not self._is_away:
                self._is_away = True
                self._stats.seams_away += 1
                self._stats.seam_outages += 1
                logging.warning(
                    f"{self._what}: {self._engine} does not serve: {without_credentials(repr(error))}"
                )
            raise Away from None
        if self._is_away:
            self._is_away = False
            self._stats.seams_away -= 1
            logging.warning(f"{self._what}: {self._engine} serves again")
        return said

    def refusal(self) -> ServiceUnavailable:
        """The response while the engine is away."""
        seconds = str(max(1, round(self._retry_s)))
        return ServiceUnavailable(
            f"the {self._what} are not available; try again later", {"retry-after": seconds}
        )
