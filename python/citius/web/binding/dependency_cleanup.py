"""What is done when a request is over: the rest of dependencies that are generators.

It is done when the handler has returned and its value has been made to fit the route's declaration, before
the response is sent, so that an exception in it is a 500; for a stream when that has ended, or its client has
disconnected. Tests: ``tests/gateway/test_dependencies.py``.
"""

from __future__ import annotations

import io
import sys
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from citius._core import Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextvars import Context

    from citius._core import Request

_SourceT = TypeVar("_SourceT")

Exits = ExitStack
AsyncExits = AsyncExitStack


def context_manager(call: Callable[..., Any], *, is_async: bool) -> Callable[..., Any]:
    """A generator function as what ``with`` takes."""
    return asynccontextmanager(call) if is_async else contextmanager(call)


def swallowed() -> NoReturn:
    """Called when a dependency has caught an exception that it was to let pass."""
    raise RuntimeError(
        "a dependency has caught the exception of a handler; raise it again at the end of its `except`"
    )


def keep_open(request: Request, value: Any, exits: ExitStack | AsyncExitStack) -> Any:
    """The value of a handler; for a stream with what is to be done at its end."""
    is_response = type(value) is Response
    body: Any = value.body if is_response else value
    cls: Any = body.__class__
    is_async = hasattr(cls, "__aiter__")
    is_stream = is_async or hasattr(cls, "__next__")
    # The body of a response to HEAD is never begun, and a file is sent without Python.
    if not is_stream or isinstance(body, io.IOBase) or request.method == "HEAD":
        return value
    kept = exits.pop_all()
    stream: Any
    if isinstance(kept, ExitStack):
        stream = _AsyncStream(body, kept) if is_async else _Stream(body, kept)
    else:
        stream = _AsyncStream(body, kept)
    if is_response:
        value.body = stream
        return value
    return stream


def in_one_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """A handler with its dependencies in a context of its own, in which its stream goes on and ends.

    A dependency may reset a context variable after its ``yield``, which works in the context that set it.
    """

    def call(*args: Any, **keywords: Any) -> Any:
        context = copy_context()
        value = context.run(function, *args, **keywords)
        body = value.body if type(value) is Response else value
        if type(body) is _Stream:
            body.context = context
        return value

    return call


class _Stream:
    """An iterator after whose end something is to be done."""

    __slots__ = ("_exits", "_pieces", "context")

    def __init__(self, pieces: Iterator[Any], exits: ExitStack) -> None:
        self._pieces = pieces
        self._exits = exits
        self.context: Context | None = None

    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> Any:
        return self._next() if self.context is None else self.context.run(self._next)

    def _next(self) -> Any:
        try:
            return next(self._pieces)
        except StopIteration:
            self._exits.close()
            raise
        except BaseException:
            self._exits.__exit__(*sys.exc_info())
            raise

    def close(self) -> None:
        """End the iterator, and do the rest."""
        if self.context is None:
            self._close()
        else:
            self.context.run(self._close)

    def _close(self) -> None:
        with self._exits:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                close()


class _AsyncStream:
    """An iterator on the event loop, of either kind, after whose end something is to be done."""

    __slots__ = ("_exits", "pieces")

    def __init__(self, pieces: Any, exits: ExitStack | AsyncExitStack) -> None:
        self.pieces: AsyncIterator[Any] = (
            pieces.__aiter__() if hasattr(pieces, "__aiter__") else _awaited(pieces)
        )
        self._exits = exits

    def __aiter__(self) -> _AsyncStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self.pieces.__anext__()
        except StopAsyncIteration:
            await self._exit(None)
            raise
        except BaseException as error:
            # An event stream has a task for its source, which still uses what the dependencies gave.
            try:
                await self._close_pieces()
            finally:
                await self._exit(error)
            raise

    async def aclose(self) -> None:
        """End the iterator, and do the rest."""
        try:
            await self._close_pieces()
        finally:
            await self._exit(None)

    async def _close_pieces(self) -> None:
        aclose = getattr(self.pieces, "aclose", None)
        if aclose is not None:
            await aclose()

    async def _exit(self, error: BaseException | None) -> None:
        kind, traceback = None, None
        if error is not None:
            kind, traceback = type(error), error.__traceback__
        if isinstance(self._exits, ExitStack):
            self._exits.__exit__(kind, error, traceback)
        else:
            await self._exits.__aexit__(kind, error, traceback)


def stream_source(body: object, cls: type[_SourceT]) -> _SourceT | None:
    """The asynchronous iterator of class ``cls`` that a handler has returned, whatever is done at its end."""
    source = body.pieces if type(body) is _AsyncStream else body
    return source if isinstance(source, cls) else None


async def _awaited(pieces: Iterator[Any]) -> AsyncIterator[Any]:
    try:
        for piece in pieces:
            yield piece
    finally:
        close = getattr(pieces, "close", None)
        if close is not None:
            close()
