"""How a request waits: on a loop, in a thread; and for how long at most.

``Call`` holds what was said for one call, ``Opened`` a transport on one loop, a ``Carrier`` sends and waits.
Tests: ``tests/http/``.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from citius.http.base import waited
from citius.http.bodies import EMPTY
from citius.http.errors import RequestError, TotalTimeout
from citius.http.response import StreamedResponse, SyncStreamedResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator

    from citius._core import ClientMetrics
    from citius.http.auth import Auth
    from citius.http.base import Fields, Reply, Transport, Upload
    from citius.http.options import Deadlines, Timeout
    from citius.http.request import Request
    from citius.http.retries import Breaker, Slots

_T = TypeVar("_T")

_deadline: contextvars.ContextVar[float | None] = contextvars.ContextVar("deadline", default=None)


@contextmanager
def deadline(seconds: float) -> Generator[None]:
    """All requests in the block, of all clients, end ``seconds`` after its beginning.

    A block within another one ends with the outer one at the latest.

    Raises:
        TotalTimeout: In the block, by a request that has not ended by then.
    """
    if not seconds > 0:
        raise ValueError(f"a deadline is more than 0 s away, got {seconds}")
    at, outer = time.monotonic() + seconds, _deadline.get()
    token = _deadline.set(at if outer is None else min(at, outer))
    try:
        yield
    finally:
        _deadline.reset(token)


def has_deadline() -> bool:
    """Whether this code is in a block of ``deadline``."""
    return _deadline.get() is not None


class Call:
    """What was said for one call."""

    __slots__ = (
        "auth", "block_end_at", "end_at", "follow_redirects", "is_stream", "origin", "started_at", "timeout",
    )  # fmt: skip

    def __init__(
        self,
        timeout: Timeout,
        auth: Auth | None,
        follow_redirects: bool,
        is_stream: bool,
        origin: str,
    ) -> None:
        self.timeout, self.auth, self.follow_redirects = timeout, auth, follow_redirects
        self.is_stream, self.origin = is_stream, origin
        self.started_at = time.monotonic()
        self.block_end_at = self.end_at = _deadline.get()
        """When the block of ``deadline`` ends, and when the call does: a stream has the first."""
        if timeout.total is not None:
            at = self.started_at + timeout.total
            self.end_at = at if self.end_at is None else min(at, self.end_at)

    def deadlines(self) -> Deadlines:
        """The seconds that the next attempt has.

        Raises:
            TotalTimeout: None are left.
        """
        if self.end_at is None:
            return self.timeout.deadlines
        left_s = self.end_at - time.monotonic()
        if left_s <= 0:
            raise self.timed_out(in_queue=True)
        return (*self.timeout.deadlines[:4], left_s)

    async def within(self, end_at: float | None, work: Awaitable[_T]) -> _T:
        """What is awaited on a loop, unless the time of the call is over before.

        Raises:
            TotalTimeout: It is.
        """
        if end_at is None:
            return await work
        block = asyncio.timeout(end_at - time.monotonic())
        try:
            async with block:
                return await work
        except TimeoutError:
            if block.expired():
                raise self.timed_out() from None
            raise

    def timed_out(self, *, in_queue: bool = False) -> TotalTimeout:
        """The exception for a call whose time is over; ``in_queue``: before its origin was asked."""
        after_s = time.monotonic() - self.started_at
        error = TotalTimeout(
            f"{self.origin}: the whole request has taken more than {after_s:.3g} s"
        )
        error.origin, error.after_s, error.in_queue = self.origin, after_s, in_queue
        return error


class BoundedReply:
    """The reply to a call in a block of ``deadline``, at whose end its content ends, too.

    In a thread that is looked at before each piece; the next one has the time of ``read``.
    """

    def __init__(self, reply: Reply, call: Call) -> None:
        self._reply, self._call = reply, call
        self.close = reply.close

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reply, name)

    def read(self) -> Any:
        """The next piece of the content."""
        return self._call.within(self._call.block_end_at, self._reply.read())


class BoundedSyncReply(BoundedReply):
    """The same in a thread."""

    def read(self) -> Any:
        """The next piece of the content."""
        end_at = self._call.block_end_at
        if end_at is not None and end_at <= time.monotonic():
            raise self._call.timed_out()
        return self._reply.read()


class Origin:
    """What a client keeps for one origin."""

    __slots__ = ("breaker", "handle", "slots")

    def __init__(self, handle: Any, breaker: Breaker | None, slots: Slots | None) -> None:
        self.handle, self.breaker, self.slots = handle, breaker, slots

    @property
    def is_well(self) -> bool:
        """Whether no circuit breaker counts failures of it."""
        return self.breaker is None or not self.breaker.failures


class Opened:
    """A transport on one loop, and what counts its requests."""

    __slots__ = ("metrics", "send", "transport")

    def __init__(self, transport: Transport, metrics: ClientMetrics | None) -> None:
        self.transport, self.metrics = transport, metrics
        self.send = transport.send


class Carrier:
    """How a loop waits."""

    is_sync = False
    bounded: type[BoundedReply] = BoundedReply
    streamed: type[StreamedResponse] | type[SyncStreamedResponse] = StreamedResponse

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def within(self, call: Call, work: Awaitable[_T]) -> _T:
        """What code of the application gives, in the time of the call."""
        return await call.within(call.end_at, work)

    async def acquire(self, slots: Slots, timeout_s: float | None) -> None:
        """Wait for a slot."""
        await slots.acquire(timeout_s)

    async def send(
        self,
        opened: Opened,
        origin: Any,
        request: Request,
        fields: Fields,
        call: Call,
        deadlines: Deadlines,
    ) -> tuple[Reply, Callable[[], None] | None]:
        """Send a request; the reply, and what is to be called when it is closed."""
        body = request.body
        if body.data is not None or body is EMPTY:
            return await opened.send(
                origin,
                request.method,
                request.url.target,
                fields,
                body.data,
                call.is_stream,
                deadlines,
            ), None
        body.check()
        upload = opened.transport.upload(body.length)
        sent = opened.send(
            origin, request.method, request.url.target, fields, upload, call.is_stream, deadlines
        )
        feeder = asyncio.ensure_future(_feed(upload, body.iterate()))
        try:
            reply = await sent
        except BaseException as error:
            await _stop(feeder)
            if isinstance(error, RequestError):
                _raise_of_content(feeder)
            raise
        if call.is_stream:
            return reply, lambda: _cancel(feeder)
        await _stop(feeder)
        _raise_of_content(feeder)
        return reply, None


async def _feed(upload: Upload, pieces: AsyncIterator[bytes]) -> None:
    try:
        async for piece in pieces:
            await upload.send(piece)
        await upload.end()
    except BaseException:
        upload.abort()
        raise


def _cancel(feeder: asyncio.Future[None]) -> None:
    feeder.cancel()


async def _stop(feeder: asyncio.Future[None]) -> None:
    """End an upload that the peer does not wait for any more."""
    feeder.cancel()
    await asyncio.wait([feeder])


def _raise_of_content(feeder: asyncio.Future[None]) -> None:
    """Raise what the application's iterator has raised, in place of the error that followed from it."""
    error = None if feeder.cancelled() else feeder.exception()
    if error is not None and not isinstance(error, RequestError | ConnectionError):
        raise error


class SyncCarrier(Carrier):
    """How a thread waits."""

    is_sync = True
    bounded = BoundedSyncReply
    streamed = SyncStreamedResponse

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    async def within(self, call: Call, work: Awaitable[_T]) -> _T:
        """What code of the application gives; a thread that is in it cannot be stopped."""
        return await work

    async def acquire(self, slots: Slots, timeout_s: float | None) -> None:
        """Wait for a slot."""
        slots.acquire_here(timeout_s)

    async def send(
        self,
        opened: Opened,
        origin: Any,
        request: Request,
        fields: Fields,
        call: Call,
        deadlines: Deadlines,
    ) -> tuple[Reply, Callable[[], None] | None]:
        """Send a request."""
        body = request.body
        body.check()
        is_whole = body.data is not None or body is EMPTY
        upload = None if is_whole else opened.transport.upload(body.length)
        sent = opened.send(
            origin, request.method, request.url.target, fields, body.data if is_whole else upload,
            call.is_stream, deadlines,
        )  # fmt: skip
        if upload is not None:
            start = getattr(sent, "start", None)
            if start is not None:
                start()
            _feed_here(upload, body.pieces())
        return waited(sent), None


def _feed_here(upload: Upload, pieces: Iterator[bytes]) -> None:
    try:
        for piece in pieces:
            waited(upload.send(piece))
        waited(upload.end())
    except RequestError:
        upload.abort()  # the reply says more
    except BaseException:
        upload.abort()
        raise


ON_LOOP: Final = Carrier()
IN_THREAD: Final = SyncCarrier()
