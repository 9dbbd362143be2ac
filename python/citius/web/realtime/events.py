"""Server-sent events (HTML standard, §9.2): ``Event`` and streams of them; broadcast.py sends to many.

A stream sends all events that are ready in one piece, a comment when nothing else was sent for a while, and
holds a bounded number of bytes for a client that reads slowly. Tests: tests/server/test_events.py.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

# `Request` at run time too: `last_event_id` can be a dependency, whose annotations are read.
from citius._core import Request, Response
from citius.errors import ClientDisconnected
from citius.observability.logging import log_exception
from citius.unknown_options import with_known_options
from citius.web.declarations import codecs
from citius.web.declarations.parameters.unread_markers import refuse_unread_markers
from citius.web.declarations.type_kinds import is_async
from citius.web.realtime.history import gap_event
from citius.web.responses.streaming import EventIterator, Fed

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task, TimerHandle
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable

    from citius._core import Stream

QUEUE_BYTES_MAX: Final = 256 * 1024
"""Bytes that wait for one slow client. Origin: the write queue of a WebSocket. Exceeded: ``slow`` decides."""

# How many times that may wait of events that come at once, before the client was offered any of them.
_BURST_FACTOR: Final = 16
_HEARTBEAT: Final = b":\n\n"
# uvloop counts whole milliseconds.
_TICK_S: Final = 0.002


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    Args:
        data: A text, or a value that is sent as JSON.
        event: Its type; ``message`` without one.
        id: What a client that comes back sends as ``Last-Event-ID``.
        retry_ms: How long the client waits before it comes back.

    Raises:
        ValueError: ``event`` or ``id`` has a line break or NUL, which would end the field.
        TypeError: ``retry_ms`` is no whole number.
    """

    data: object = ""
    event: str | None = None
    id: str | None = None
    retry_ms: int | None = None

    def __post_init__(self) -> None:
        if self.event is not None:
            _check_line("event", self.event)
        if self.id is not None:
            _check_line("id", self.id)
        if self.retry_ms is not None and not isinstance(cast("object", self.retry_ms), int):
            raise TypeError(
                f"retry_ms of an event is a number of milliseconds, got {self.retry_ms!r}"
            )

    def encode(self) -> bytes:
        """The event as it is sent."""
        lines: list[str] = []
        if self.event is not None:
            lines.append(f"event: {self.event}\n")
        if self.id is not None:
            lines.append(f"id: {self.id}\n")
        if self.retry_ms is not None:
            lines.append(f"retry: {self.retry_ms:d}\n")
        text = self.data if isinstance(self.data, str) else _json(self.data)
        # The three line ends of the standard, and no other (str.splitlines knows more).
        for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
            lines.append(f"data: {line}\n")
        lines.append("\n")
        return "".join(lines).encode("utf-8", "replace")


def _check_line(name: str, value: str) -> None:
    if "\n" in value or "\r" in value or "\0" in value:
        raise ValueError(f"the {name} of an event holds a line break or NUL: {value!r}")


def _json(value: object) -> str:
    return codecs.encode_json(value).decode()


def encoded_event(name: str, data: object) -> Event:
    """An event whose data is a text, its JSON, so that it is not taken for a value of the declared type."""
    return Event(_json(data), event=name)


def encode_event(event: object) -> bytes:
    """An event, or the data of one, as it is sent."""
    return (event if isinstance(event, Event) else Event(event)).encode()


@with_known_options
def event_stream(
    source: AsyncIterable[object] | Iterable[object],
    *,
    heartbeat_s: float | None = 15.0,
    queue_bytes_max: int = QUEUE_BYTES_MAX,
) -> Response:
    """A response of the events that ``source`` yields: an ``Event``, or the data of one.

    The source is closed as soon as the client has left, and waits while the client reads slowly.

    Args:
        source: An iterator; an asynchronous one if it waits.
        heartbeat_s: After so long without an event a comment is sent, which shows proxies, and the server,
            whether the client is there. Asynchronous sources only.
        queue_bytes_max: Bytes that may wait for the client before the source has to.
    """
    if not hasattr(source, "__aiter__"):
        return _response(_Events(cast("Iterable[object]", source)))
    stream = EventStream(heartbeat_s=heartbeat_s, queue_bytes_max=queue_bytes_max)
    stream._source = cast("AsyncIterable[object]", source)  # pyright: ignore[reportPrivateUsage]
    return stream.response()


class _Events(EventIterator):
    """The events of an iterator, encoded one by one; on the reactor's thread the extension does that."""

    __slots__ = ("_source",)

    def __init__(self, source: Iterable[object]) -> None:
        self._source = source
        self.events = iter(source)

    def hold(self, keep: Callable[[object], object]) -> None:
        """Have ``keep`` make the data of each event be of the declared type."""
        self.events = (held_event(event, keep) for event in self.events)

    def __iter__(self) -> _Events:
        return self

    def __next__(self) -> bytes:
        return encode_event(next(self.events))

    def close(self) -> None:
        """Close the source: its own method, and not that of an iterator over it."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()


def held_event(event: object, keep: Callable[[object], object]) -> object:
    """An event with the data that ``keep`` makes of its own; a text is sent as it is."""
    if isinstance(event, str):
        return event
    if not isinstance(event, Event):
        return keep(event)
    return event if isinstance(event.data, str) else replace(event, data=keep(event.data))


class _HeldSource:
    """Events of an asynchronous source; no generator, whose end would not close the source."""

    __slots__ = ("_iterator", "_keep")

    def __init__(self, source: AsyncIterable[object], keep: Callable[[object], object]) -> None:
        self._iterator = aiter(source)
        self._keep = keep

    def __aiter__(self) -> _HeldSource:
        return self

    async def __anext__(self) -> object:
        return held_event(await anext(self._iterator), self._keep)

    async def aclose(self) -> None:
        """Close the source."""
        aclose = getattr(self._iterator, "aclose", None)
        if aclose is not None:
            await aclose()


def _response(body: object) -> Response:
    fields = {"cache-control": "no-cache", "x-accel-buffering": "no"}
    return Response(body, 200, fields, "text/event-stream")


def last_event_id(request: Request) -> str | None:
    """The ``id`` of the last event that the client has seen, if it says one."""
    found = request.header("last-event-id")
    return found or None


class EventStream(Fed):
    """Events for one client, pushed by ``send``; callable from any thread.

    Args:
        heartbeat_s: After so long without an event a comment is sent; ``None`` for none.
        queue_bytes_max: Bytes that may wait for the client.
        slow: What becomes of a stream whose client does not read: it is closed, or misses the event, and gets
            one of the type ``gap`` with the number of those that it has missed.
        on_close: Called on the loop's thread when the client has left, or the stream was closed.
    """

    @with_known_options
    def __init__(
        self,
        *,
        heartbeat_s: float | None = 15.0,
        queue_bytes_max: int = QUEUE_BYTES_MAX,
        slow: Literal["close", "drop"] = "close",
        on_close: Callable[[EventStream], object] | None = None,
    ) -> None:
        self._loop: AbstractEventLoop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._heartbeat_s = heartbeat_s
        self._queue_bytes_max = queue_bytes_max
        self._slow = slow
        if on_close is not None and is_async(on_close):
            raise TypeError(
                f"on_close= of an EventStream is called on the loop and not awaited, and {on_close!r} is "
                "`async def`; start a task in a `def`"
            )
        if on_close is not None:
            refuse_unread_markers(on_close, (self,), {})
        self._on_close = on_close
        self._queue: deque[bytes] = deque()
        self._queued_bytes = 0
        self._reader: Future[None] | None = None
        self._room: Future[None] | None = None
        self._timer: TimerHandle | None = None
        self._waits_since = 0.0
        self._source: AsyncIterable[object] | None = None
        self._task: Task[None] | None = None
        # Takes events as they are sent, once it is there, until it is full.
        self._stream: Stream | None = None
        self._is_full = False
        self._is_ending = self._has_begun = False
        self.is_closed = False
        """Whether the client has left, or the stream was closed."""
        self.missed = 0
        """Events that the client was too slow for."""
        self._untold = 0
        """Those of them that it was not told of."""

    def response(self) -> Response:
        """The response to return from the handler."""
        return _response(self)

    def hold(self, keep: Callable[[object], object]) -> None:
        """Have ``keep`` make the data of each event of the source be of the declared type.

        Raises:
            TypeError: The events are pushed by ``send``, which encodes them at once.
        """
        if self._source is None:
            raise TypeError(
                "the route declares the type of its events, which does not hold for those of an EventStream: "
                "return event_stream(…), or declare Iterator[Event]"
            )
        self._source = _HeldSource(self._source, keep)

    def send(self, event: object) -> bool:
        """Queue an event, or the data of one; ``False`` if the client has left or misses it."""
        return self.send_encoded(encode_event(event))

    def send_encoded(self, data: bytes) -> bool:
        """Queue what ``encode_event`` has made."""
        if threading.get_ident() != self._thread:
            if not self.is_closed:
                self._loop.call_soon_threadsafe(self.send_encoded, data)
            return not self.is_closed
        return self._send_here(data)

    def _send_here(self, data: bytes) -> bool:
        """Queue an encoded event on the thread of the loop."""
        if self.is_closed or self._is_ending:
            return False
        if self._stream is not None and not self._is_full:
            self._give(self._stream, data)
            return not self.is_closed
        if self._is_too_slow(len(data)):
            self.missed += 1
            self._untold += 1
            if self._slow == "close":
                self._end()
            return False
        self._tell_gap()
        self._push(data)
        return True

    def _is_too_slow(self, more_bytes: int) -> bool:
        """Whether the client leaves too much waiting for so many bytes more to be queued.

        It is not for what it was not offered yet: events of one turn of the loop are written behind it.
        """
        waiting = self._queued_bytes + more_bytes
        if not self._queued_bytes or waiting <= self._queue_bytes_max:
            return False
        if waiting > _BURST_FACTOR * self._queue_bytes_max:
            return True
        if self._stream is not None:
            return self._stream.is_offered()
        # A reader that waited has been woken, and takes all that is here when it comes.
        return self._reader is None

    def _tell_gap(self) -> None:
        if self._untold:
            count, self._untold = self._untold, 0
            self._push(gap_event(count))

    def close(self) -> None:
        """End the stream when what is queued has been sent."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.close)
            return
        self._is_ending = True
        if not self._has_begun:  # as in a response to HEAD, whose body nothing reads
            self._end()
        _wake(self._reader)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def feed(self, stream: Stream) -> None:
        """Send what is queued, and events as they come; returns at the end of the stream."""
        self._has_begun = True
        self._stream = stream
        self._arm()
        self._flush()
        if self._source is not None:
            await self._drain(self._source)
        while not self.is_closed and (self._queue or not self._is_ending):
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        self._finish()

    def _give(self, stream: Stream, data: bytes) -> None:
        """Send to the client. What comes while there is no room for it is queued."""
        try:
            self._is_full = not stream.send(data)
        except ClientDisconnected:
            return self._end()
        if self._is_full:
            stream.on_writable(self._flush)
        self._arm()

    def _flush(self) -> None:
        """Send what is queued; the client has room."""
        self._is_full = False
        if self._queue and self._stream is not None:
            self._give(self._stream, self._taken())
        if not self._is_full:
            self._tell_gap()
        if self._is_ending:
            _wake(self._reader)

    def _taken(self) -> bytes:
        """What is queued, in one piece."""
        data = b"".join(self._queue)
        self._queue.clear()
        self._queued_bytes = 0
        _wake(self._room)
        return data

    async def __anext__(self) -> bytes:
        self._has_begun = True
        if self._source is not None and self._task is None:
            self._task = self._loop.create_task(self._drain(self._source))
        while not self._queue:
            if self.is_closed or self._is_ending:
                self._finish()
                raise StopAsyncIteration
            self._arm()
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        return self._taken()

    async def aclose(self) -> None:
        """The client has left, or all has been sent."""
        self._end()
        task = self._task
        if task is not None and not task.done():
            task.cancel()
            await asyncio.wait([task])

    def _resume(self, data: bytes) -> None:
        """Queue what the client has missed, before the stream begins. It does not count as waiting."""
        self._queue.append(data)

    def _push(self, data: bytes) -> None:
        if self._stream is not None and not self._is_full:
            return self._give(self._stream, data)
        self._queue.append(data)
        self._queued_bytes += len(data)
        _wake(self._reader)

    async def _drain(self, source: AsyncIterable[object]) -> None:
        """Take events of the source while there is room for them."""
        iterator, stream = aiter(source), self._stream
        try:
            async for event in iterator:
                if stream is not None and not self._is_full:
                    if not stream.send_event(event):
                        self._is_full = True
                        stream.on_writable(self._flush)
                    continue
                self._push(encode_event(event))
                if self.is_closed:
                    break
                while self._queued_bytes >= self._queue_bytes_max:
                    self._room = self._loop.create_future()
                    await self._room
            self.close()
        except ClientDisconnected:
            self._end()
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            # The end of a stream must not look as if all had been sent, so the client comes back.
            log_exception("a stream of events broke off", error)
            self.close()
        finally:
            aclose = getattr(iterator, "aclose", None)
            if aclose is not None:
                await aclose()

    def _arm(self) -> None:
        """Have a comment sent after so long; the timer of an earlier event serves on."""
        if self._heartbeat_s is not None:
            self._waits_since = self._loop.time()
            if self._timer is None:
                self._timer = self._loop.call_later(self._heartbeat_s, self._beat)

    def _beat(self) -> None:
        assert self._heartbeat_s is not None, "it has armed the timer"
        idle_s = self._loop.time() - self._waits_since
        if self._source is not None and self._stream is not None:
            # The extension knows when it was given an event.
            idle_s = min(idle_s, self._stream.idle_ms() / 1000)
        left_s = self._heartbeat_s - idle_s
        if left_s > _TICK_S:
            self._timer = self._loop.call_later(left_s, self._beat)
        else:
            self._timer = None
            # A client without room is not asked for a sign of life; the next event arms the timer again.
            if not self._is_full:
                self._push(_HEARTBEAT)

    def _end(self) -> None:
        self._queue.clear()
        self._queued_bytes = 0
        self._finish()
        _wake(self._reader)
        _wake(self._room)

    def _finish(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        was_closed, self.is_closed = self.is_closed, True
        if not was_closed and self._on_close is not None:
            self._on_close(self)


def _wake(future: Future[Any] | None) -> None:
    if future is not None and not future.done():
        future.set_result(None)
