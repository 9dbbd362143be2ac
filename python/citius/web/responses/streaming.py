"""Streamed responses: what an iterator yields goes to the extension's ``Stream``.

``pump_async`` is for asynchronous iterators, ``pump_blocking`` for the others; iterators of blocking handlers
are ``Driven`` where waiting is allowed. All keep to the client's pace, close the iterator whatever happens
and abort the response when the iterator raises: a part of a response must not look like the whole. The
extension calls this module (citius-py/src/functions.rs).
"""

from __future__ import annotations

from contextvars import copy_context
from io import IOBase
from typing import TYPE_CHECKING, Any, cast

from citius._core import Response
from citius.errors import ClientDisconnected, ContentTooLarge, comes_from_disconnection
from citius.observability.logging import log_exception, warning
from citius.serial import carry
from citius.waiting import called_back, release_slot, wait_in_thread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
    from contextvars import ContextVar

    from citius._core import Stream


_UNSET: Any = object()


class Driven:
    """An iterator that sends itself from where it may wait."""

    __slots__ = ()

    def drive(self, stream: Stream) -> None:
        """Send everything to ``stream``; returns at once."""
        raise NotImplementedError


class Fed:
    """An asynchronous iterator that sends what it would yield, without a step of a task for each."""

    __slots__ = ()

    async def feed(self, stream: Stream) -> None:
        """Send to ``stream`` from now on; returns when all has been sent."""
        raise NotImplementedError


class InGreenlet(Fed):
    """The iterator of a serial handler, asynchronous: its steps are taken in greenlets, where it may wait."""

    __slots__ = ("_iterator",)

    def __init__(self, iterator: Iterator[bytes | str]) -> None:
        self._iterator = iterator

    async def feed(self, stream: Stream) -> None:
        """Send all that it yields, from one greenlet."""
        await carry(self._send_all, (stream,), {})

    def __aiter__(self) -> InGreenlet:
        """For middleware and servers that take one piece at a time."""
        return self

    async def __anext__(self) -> bytes | str:
        """The next piece."""
        piece = await carry(next, (self._iterator, None), {})
        if piece is None:
            raise StopAsyncIteration
        return piece

    async def aclose(self) -> None:
        """End the iterator, whose ``finally`` blocks may wait."""
        await carry(self.close, (), {})

    def close(self) -> None:
        """End an iterator that has not begun."""
        method = getattr(self._iterator, "close", None)
        if method is not None:
            method()

    def _send_all(self, stream: Stream) -> None:
        for chunk in self._iterator:
            if not stream.send(chunk):
                wait_in_thread(stream.on_writable)


def stepped(result: Any) -> Any:
    """What a serial handler has returned, with the iterator of a streamed response in greenlets."""
    if type(result) is Response:
        if _is_stepped(result.body):
            result.body = InGreenlet(cast("Iterator[bytes | str]", result.body))
        return result
    return InGreenlet(result) if _is_stepped(result) else result


def _is_stepped(body: object) -> bool:
    """Whether it is an iterator whose steps are Python code; a file is sent without."""
    return hasattr(body, "__next__") and not isinstance(body, IOBase)


class EventIterator:
    """An iterator whose pieces are server-sent events, which the extension can encode itself."""

    __slots__ = ("events",)

    events: Iterator[object]
    """What is left of them: an ``Event`` each, or the data of one."""


def pump_async(
    stream: Stream, iterator: AsyncIterator[bytes | str] | Fed
) -> Coroutine[Any, Any, None]:
    """Send what ``iterator`` yields; runs as a task, which the extension cancels when the client is gone.

    Where middleware and dependencies were called without one, it is in another context than they: what they
    have set there goes with it.
    """
    context = copy_context()
    return _pump_async(stream, iterator, [*context.items()] if len(context) else ())


async def _pump_async(
    stream: Stream,
    iterator: AsyncIterator[bytes | str] | Fed,
    variables: Iterable[tuple[ContextVar[Any], Any]],
) -> None:
    for variable, value in variables:
        if variable.get(_UNSET) is not value:
            variable.set(value)
    try:
        if isinstance(iterator, Fed):
            await iterator.feed(stream)
        else:
            async for chunk in iterator:
                if not stream.send(chunk):
                    await called_back(stream.on_writable)
        stream.end()
    except ClientDisconnected:
        stream.abort()
    except BaseException as error:
        from asyncio import CancelledError

        is_told_to_end = isinstance(error, CancelledError | GeneratorExit)
        # Most streams of events end by cancellation after the client has left.
        is_surprise = not (is_told_to_end and _is_gone(stream))
        stream.abort()
        if is_surprise:
            _log_broken_stream(stream, error)
        if is_told_to_end:
            raise
    finally:
        aclose = getattr(iterator, "aclose", None)
        if aclose is not None:
            await aclose()


def pump_blocking(stream: Stream, iterator: Iterator[bytes | str]) -> None:
    """Send what ``iterator`` yields, from the reactor's thread, without ever waiting there.

    Iterators of blocking handlers go back to the pool, where waiting is allowed.
    """
    if isinstance(iterator, Driven):
        iterator.drive(stream)
    else:
        _Pump(stream, iterator).send()


class _Pump:
    """A synchronous iterator between two turns: it goes on when there is room again.

    In one context from its first step to its last: what a generator sets in between it finds again.
    """

    __slots__ = ("_context", "_iterator", "_stream")

    def __init__(self, stream: Stream, iterator: Iterator[bytes | str]) -> None:
        self._stream = stream
        self._iterator = iterator
        self._context = copy_context()

    def send(self) -> None:
        self._context.run(self._send)

    def _send(self) -> None:
        try:
            if not self._send_all():
                self._stream.on_writable(self.send)
                return
            self._stream.end()
        except ClientDisconnected:
            self._stream.abort()
        except BaseException as error:
            # What ends a process or a task elsewhere came from a generator that has neither.
            self._stream.abort()
            _log_broken_stream(self._stream, error)
        close(self._stream, self._iterator)

    def _send_all(self) -> bool:
        """Send while there is room; whether that was all."""
        if isinstance(self._iterator, EventIterator):
            return self._stream.send_events(self._iterator.events)
        return all(map(self._stream.send, self._iterator))


def drive_in_thread(
    stream: Stream,
    iterator: Iterator[bytes | str],
    wait: Callable[[Callable[[Callable[[], object]], None]], object] = wait_in_thread,
) -> None:
    """Send what ``iterator`` yields from a thread of the pool, which waits for room."""
    try:
        for chunk in iterator:
            if not stream.send(chunk):
                wait(stream.on_writable)
        release_slot()
        stream.end()
    except ClientDisconnected:
        stream.abort()
    except BaseException as error:
        stream.abort()
        _log_broken_stream(stream, error)
    close(stream, iterator)


def close(stream: Stream, iterator: object) -> None:
    """Let a generator run its ``finally`` blocks now, not when the collector comes by."""
    method = getattr(iterator, "close", None)
    if method is not None:
        try:
            method()
        except BaseException as error:
            _log_broken_stream(stream, error)


def _is_gone(stream: Stream) -> bool:
    try:
        stream.send(b"")
    except ClientDisconnected:
        return True
    return False


def _log_broken_stream(stream: Stream, error: BaseException) -> None:
    if comes_from_disconnection(error) and _is_gone(stream):
        return
    # The extension makes the message, because the streamed response may be all that is left of its request.
    message = stream._message(": its streamed response broke off")  # pyright: ignore[reportPrivateUsage]
    if isinstance(error, ContentTooLarge):
        return warning(f"{message}: {error}")  # the client's mistake
    log_exception(message, error)
