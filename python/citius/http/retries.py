"""Whether and when a request is sent again; which origins are left alone; how many requests an origin gets.

The state of one client or one origin, used by threads and loops alike. Tests: ``tests/http/test_retries.py``.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from citius._core import CircuitGate, OriginSlots
from citius.http.errors import (
    AddressRefused,
    CircuitOpen,
    ConnectError,
    ConnectTimeout,
    PoolTimeout,
    ReadError,
    ReadTimeout,
    RemoteProtocolError,
    TlsError,
    TotalTimeout,
    WriteError,
    WriteTimeout,
)
from citius.http.options import IDEMPOTENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.http.errors import RequestError
    from citius.http.options import CircuitBreaker, Retry
    from citius.http.request import Request
    from citius.http.response import Response

_UNSENT = (ConnectError, ConnectTimeout)
_SENT = (ReadError, WriteError, ReadTimeout, WriteTimeout, RemoteProtocolError)
# What will fail the next time as well.
_LASTING = (TlsError, AddressRefused)


class Budget:
    """How many further attempts there may be: a share of the requests, over many."""

    def __init__(self, ratio: float, at_least: float) -> None:
        self._ratio, self._max = ratio, max(at_least, 10.0 * ratio, 1.0)
        self._left = max(at_least, 0.0)
        self._lock = threading.Lock()

    def add(self) -> None:
        """A request is made."""
        with self._lock:
            self._left = min(self._left + self._ratio, self._max)

    def take(self) -> bool:
        """Whether one more attempt is within it."""
        with self._lock:
            if self._left < 1.0:
                return False
            self._left -= 1.0
            return True


def is_repeatable(request: Request) -> bool:
    """Whether a request may be carried out twice, and its content sent again."""
    is_safe = request.method in IDEMPOTENT or "idempotency-key" in request.headers
    return is_safe and request.body.can_repeat


class Retries:
    """The retries of one client."""

    def __init__(self, retry: Retry) -> None:
        import random

        self._retry = retry
        self._statuses = frozenset(retry.statuses)
        self.budget = Budget(retry.budget_ratio, retry.budget_min)
        self._random = random.Random()

    def after_error(self, request: Request, error: RequestError, attempt: int) -> float | None:
        """Seconds to wait before the next attempt; ``None``: there is none."""
        if attempt >= self._retry.attempts_max or isinstance(error, _LASTING):
            return None
        if isinstance(error, _UNSENT):
            is_allowed = request.body.can_repeat
        else:
            is_allowed = isinstance(error, _SENT) and is_repeatable(request)
        return self._backoff(attempt) if is_allowed and self.budget.take() else None

    def after_response(self, request: Request, response: Response, attempt: int) -> float | None:
        """The same for a response."""
        if (
            attempt >= self._retry.attempts_max
            or response.status_code not in self._statuses
            or not is_repeatable(request)
        ):
            return None
        asked_s = retry_after(response.headers.get("retry-after"), time.time())
        if asked_s is not None and asked_s > self._retry.retry_after_max_s:
            return None
        if not self.budget.take():
            return None
        return max(asked_s or 0.0, self._backoff(attempt))

    def _backoff(self, attempt: int) -> float:
        longest = min(
            self._retry.backoff_s * 2.0 ** min(attempt - 1, 30), self._retry.backoff_max_s
        )
        return self._random.uniform(0.0, longest)


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds that ``Retry-After`` asks to wait (RFC 9110 §10.2.3); ``None`` if it says nothing."""
    if value is None:
        return None
    value = value.strip()
    if value.isdecimal() and value.isascii():
        return float(value[:10])
    from citius.http.cookies import cookie_date

    at = cookie_date(value)
    return None if at is None else max(0.0, at - now)


class Breaker:
    """The circuit breaker of one origin."""

    def __init__(self, settings: CircuitBreaker, origin: str, now: Callable[[], float]) -> None:
        self._settings, self._origin, self._now = settings, origin, now
        self.statuses = frozenset(settings.statuses)
        self.failures = 0
        """Of requests, since the last one that was none."""
        self._open_until: float | None = None
        self.changes = 0
        """How often it has opened or closed: what a request finds that was sent before counts no more."""
        self._probes = 0
        self.gate = CircuitGate()
        """What the extension knows of it."""
        self._lock = threading.Lock()

    @property
    def state(self) -> str:
        """``closed``, ``open`` or ``half-open``."""
        if self._open_until is None:
            return "closed"
        return "open" if self._now() < self._open_until else "half-open"

    def enter(self) -> bool:
        """A request is about to be sent; returns whether it finds out if the origin is there again.

        Raises:
            CircuitOpen: It is not to be sent.
        """
        with self._lock:
            if self._open_until is None:
                return False
            left_s = self._open_until - self._now()
            if left_s > 0 or self._probes >= self._settings.probes:
                error = CircuitOpen(
                    f"{self._origin} has failed {self.failures} times in a row, and gets no requests for "
                    f"{max(left_s, 0.0):.1f} s"
                )
                error.origin = self._origin
                raise error
            self._probes += 1
            return True

    def leave(
        self,
        is_probe: bool,
        status: int | None,
        error: BaseException | None,
        since: int | None = None,
    ) -> None:
        """The request is over: with a response, an error, or neither, because its caller has left.

        ``since`` is what ``changes`` was when it was sent; one of before the last change counts for nothing.
        """
        with self._lock:
            if is_probe:
                self._probes -= 1
            if since is not None and since != self.changes:
                return
            if status is not None and status not in self.statuses:
                self.changes += self._open_until is not None
                self.failures, self._open_until = 0, None
            elif status is not None or _counts(error):
                self.failures += 1
                if is_probe or self.failures >= self._settings.failures:
                    self._open_until = self._now() + self._settings.open_s
                    self.changes += 1
            self.gate.set(self._open_until is not None, self.failures > 0, self.changes)


def _counts(error: BaseException | None) -> bool:
    if isinstance(error, TotalTimeout):
        return not error.in_queue
    return isinstance(error, (*_UNSENT, *_SENT)) and not isinstance(error, AddressRefused)


class Slots:
    """How many requests one origin gets at once; what waits is served in order."""

    def __init__(self, count: int, origin: str) -> None:
        self.state = OriginSlots(count)
        """How many are free, and how many wait: requests that Python does not see take slots as well."""
        self._count, self._origin = count, origin
        self._waiting: deque[_Waiter] = deque()
        self._lock = threading.Lock()

    def _enter(self, make: Callable[[], _Waiter]) -> _Waiter | None:
        with self._lock:
            waiter = make()
            if self.state.take_or_wait():
                return None
            self._waiting.append(waiter)
            return waiter

    async def acquire(self, timeout_s: float | None) -> None:
        """Wait for a slot, on a loop.

        Raises:
            PoolTimeout: None became free in time.
        """
        import asyncio

        waiter = self._enter(lambda: _LoopWaiter(asyncio.get_running_loop()))
        if waiter is None:
            return
        assert isinstance(waiter, _LoopWaiter)
        is_over = False
        try:
            async with asyncio.timeout(timeout_s):
                await waiter.future
            is_over = True
        except TimeoutError:
            if not self._give_up(waiter):
                raise self._timed_out(timeout_s) from None
            is_over = True  # it came at the last moment
        finally:
            if not is_over and self._give_up(waiter):
                self.release()

    def acquire_here(self, timeout_s: float | None) -> None:
        """Wait for a slot, in a thread.

        Raises:
            PoolTimeout: None became free in time.
        """
        waiter = self._enter(_ThreadWaiter)
        if waiter is None:
            return
        assert isinstance(waiter, _ThreadWaiter)
        is_over = False
        try:
            is_over = waiter.event.wait(timeout_s) or self._give_up(waiter)
        finally:
            if not is_over and self._give_up(waiter):
                self.release()
        if not is_over:
            raise self._timed_out(timeout_s)

    def _give_up(self, waiter: _Waiter) -> bool:
        """Wait no more; returns whether the slot has been handed over already."""
        with self._lock:
            if waiter.has_slot:
                return True
            if waiter in self._waiting:
                self._waiting.remove(waiter)
                self.state.waits_no_more()
            return False

    def release(self) -> None:
        """Hand the slot to what waits longest, and is still there."""
        while True:
            with self._lock:
                if self.state.give():
                    return
                waiter = self._waiting.popleft()
                self.state.waits_no_more()
                waiter.has_slot = True
            if waiter.wake():
                return

    def _timed_out(self, timeout_s: float | None) -> PoolTimeout:
        error = PoolTimeout(
            f"{self._count} requests to {self._origin} are under way (Limits.requests_per_origin_max), "
            f"and none ended within {timeout_s:g} s"
        )
        error.origin, error.after_s = self._origin, timeout_s
        return error


class _Waiter:
    has_slot = False

    def wake(self) -> bool:
        """The slot is there; returns whether it is still wanted."""
        raise NotImplementedError


class _LoopWaiter(_Waiter):
    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self.future = loop.create_future()

    def _set(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def wake(self) -> bool:
        """Continue on the loop; one that is closed has nothing that waits any more."""
        try:
            self._loop.call_soon_threadsafe(self._set)
        except RuntimeError:
            return False
        return True


class _ThreadWaiter(_Waiter):
    def __init__(self) -> None:
        self.event = threading.Event()

    def wake(self) -> bool:
        """Continue in the thread."""
        self.event.set()
        return True
