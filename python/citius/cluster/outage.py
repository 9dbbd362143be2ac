"""What requests meet while an engine of their data is away: one wait, then none until it is tried again.

A command without a reply in four fifths of ``timeout_s`` puts its engine in doubt. Commands to an engine in
doubt have the last fifth, and a second one without a reply makes an outage, as does a connection that fails
at once; for ``retry_s`` after that no request asks again. So a single slow reply is no outage, and a request
waits ``timeout_s`` at most, however many seams it has: those of one engine share what they know of it
(:class:`Health`). Time in which the event loop stands still does not count (``patience.py``).

What requests get meanwhile is a choice of each store, ``when_down``. Begin and end of an outage are logged
once. Tests: ``tests/cluster/test_stalls.py``, ``tests/cluster/test_outages.py``.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from citius.cluster.engines import EngineAway, EngineRefused, without_credentials
from citius.cluster.patience import Patience
from citius.cluster.stats import Stats
from citius.errors import ServiceUnavailable
from citius.observability import logging

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

_T = TypeVar("_T")

TIMEOUT_S: Final = 0.5
"""How long one request waits for an engine. Origin: some hundred times what it takes on the same network."""
_DOUBT: Final = 0.2
"""The part of it that is left to an engine in doubt."""

RETRY_S: Final = 1.0
"""For how long an engine that did not respond is not asked again."""

# Between two attempts to give something back to an engine that is away.
_LATER_S: Final = 0.5
# How many wait for that, on one loop. Exceeded: the oldest ends by itself.
_LATER_MAX: Final = 10_000

# Where the exceptions of clients are defined.
_CLIENTS: Final = ("redis.", "citius.redis.")
# Their classes for errors that the server has responded with.
_REFUSALS: Final = frozenset({"ResponseError", "ServerError"})


class Away(Exception):
    """The engine did not respond, or not as it should."""


_Release: TypeAlias = "Callable[[], Coroutine[object, object, None]]"

_giving_back: set[asyncio.Task[Exception | None]] = set()
_later: set[_Later] = set()


def give_back(release: _Release, again_s: float) -> asyncio.Task[Exception | None]:
    """Give back what was taken or may have been: a task that the caller's cancellation does not end.

    It takes ``TIMEOUT_S`` at most, and returns why it has failed. Then ``release`` is called again, apart
    from it, until it succeeds or ``again_s`` seconds are over: for so long at most what was taken lasts by
    itself. ``Asker.wait_for`` waits for it.
    """
    loop = asyncio.get_running_loop()
    task = loop.create_task(_given_back(release, loop.time() + again_s), name="citius-give-back")
    _giving_back.add(task)
    task.add_done_callback(_giving_back.discard)
    return task


async def all_given_back() -> None:
    """Wait for what is given back on this loop, before the engine's client is closed."""
    loop = asyncio.get_running_loop()
    if own := [task for task in _giving_back if task.get_loop() is loop]:
        await asyncio.wait(own)
    if later := [one.task for one in _later if one.is_of(loop)]:
        for task in later:
            task.cancel()
        await asyncio.wait(later)


async def _given_back(release: _Release, until: float) -> Exception | None:
    error = await _failure(release)
    if error is not None:
        loop = asyncio.get_running_loop()
        later = next((one for one in _later if one.is_of(loop)), None) or _Later(loop)
        later.queue.append((until, release))
    return error


async def _failure(release: _Release) -> Exception | None:
    """Why it has failed to release, if it has."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            await release()
    except Exception as error:
        return error
    return None


class _Later:
    """What is given back when its engine is there again, on one loop: one after the other."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.queue: deque[tuple[float, _Release]] = deque(maxlen=_LATER_MAX)
        self.task = loop.create_task(self._run(), name="citius-give-back-later")
        _later.add(self)
        self.task.add_done_callback(lambda _: _later.discard(self))

    def is_of(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether it gives back what is taken on this loop."""
        return not self.task.done() and self.task.get_loop() is loop

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while self.queue:
            until, release = self.queue[0]
            if loop.time() < until and await _failure(release):
                await asyncio.sleep(_LATER_S * random.uniform(0.5, 1.0))
            elif self.queue and self.queue[0][1] is release:  # none has displaced it
                self.queue.popleft()


class Health:
    """What is known of one engine: of all that ask it, whichever seam they are of."""

    __slots__ = ("asked_again_at", "doubted_at", "doubted_until", "reason")

    def __init__(self) -> None:
        self.asked_again_at = 0.0
        """Until then it is away."""
        self.doubted_at = self.doubted_until = 0.0
        self.reason = ""

    def has_replied(self) -> None:
        """It is there."""
        self.asked_again_at = self.doubted_until = 0.0

    def is_lost(self, begun_at: float, retry_s: float) -> bool:
        """A command that began then had no reply in time; whether that makes an outage."""
        now = time.monotonic()
        if self.asked_again_at or self.doubted_at <= begun_at < self.doubted_until:
            return True
        if begun_at >= self.doubted_until:
            self.doubted_at, self.doubted_until = now, now + max(retry_s, TIMEOUT_S)
        return False


class Asker:
    """Commands to one engine, bounded in time.

    Args:
        what: What is in the engine, for the log and the responses of 503.
        engine: Its name.
        stats: Where outages are counted.
        health: What is known of the engine, if others ask it, too.
    """

    def __init__(
        self,
        what: str,
        timeout_s: float = TIMEOUT_S,
        retry_s: float = RETRY_S,
        engine: str = "redis",
        stats: Stats | None = None,
        health: Health | None = None,
    ) -> None:
        self._what = what
        self._engine = engine
        self._timeout_s = timeout_s
        self._retry_s = retry_s
        self._stats = stats or Stats()
        self._health = health or Health()
        self._is_away = False
        self._refused_until = 0.0

    @property
    def is_away(self) -> bool:
        """Whether the engine did not respond when it was last asked."""
        return self._is_away

    async def ask(self, command: Callable[[], Awaitable[_T]]) -> _T:
        """What the engine says.

        Raises:
            Away: Nothing, or that it cannot.
        """
        health, begun_at = self._health, time.monotonic()
        if begun_at < self._refused_until:
            raise Away
        if begun_at < health.asked_again_at:
            self._found_away(health.reason)
            raise Away
        is_doubted = begun_at < health.doubted_until
        wait_s = self._timeout_s * (_DOUBT if is_doubted else 1.0 - _DOUBT)
        try:
            async with Patience(wait_s):
                said = await command()
        except Exception as error:
            is_outage = isinstance(error, (OSError, EngineAway))  # TimeoutError is an OSError
            if not (is_outage or type(error).__module__.startswith(_CLIENTS)):
                raise
            self._failed(error, begun_at)
            raise Away from None
        health.has_replied()
        if self._is_away:
            self._is_away = False
            self._stats.seams_away -= 1
            logging.warning(f"{self._what}: {self._engine} serves again")
        return said

    async def wait_for(self, giving_back: asyncio.Task[Exception | None]) -> None:
        """Wait until something is given back, for no longer than for any command."""

        async def given_back() -> None:
            error = await asyncio.shield(giving_back)
            if error is not None:
                raise error if isinstance(error, OSError | EngineAway) else EngineAway(repr(error))

        with suppress(Away):  # it goes on
            await self.ask(given_back)

    def _failed(self, error: Exception, begun_at: float) -> None:
        reason = without_credentials(repr(error))
        if _is_refusal(error):
            # The engine is there: what it refuses to this seam says nothing of the others.
            self._refused_until = time.monotonic() + self._retry_s
        elif isinstance(error, TimeoutError) and not self._health.is_lost(begun_at, self._retry_s):
            return
        else:
            self._health.asked_again_at = time.monotonic() + self._retry_s
            self._health.reason = reason
        self._found_away(reason)

    def _found_away(self, reason: str) -> None:
        if not self._is_away:
            self._is_away = True
            self._stats.seams_away += 1
            self._stats.seam_outages += 1
            logging.warning(f"{self._what}: {self._engine} does not serve: {reason}")

    def refusal(self) -> ServiceUnavailable:
        """The response while the engine is away."""
        seconds = str(max(1, round(self._retry_s)))
        return ServiceUnavailable(
            f"the {self._what} are not available; try again later", {"retry-after": seconds}
        )


def _is_refusal(error: Exception) -> bool:
    """Whether the engine has responded with an error, by the class of any client."""
    if isinstance(error, ServiceUnavailable):  # it cannot serve anything now
        return False
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, EngineRefused) or not names.isdisjoint(_REFUSALS)
