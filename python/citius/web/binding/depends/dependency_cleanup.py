"""What is done when a request is over: the rest of dependencies that are generators.

It is done when the handler has returned and its value has been made to fit the route's declaration, before
the response is sent, so that an exception in it is a 500; for a stream when that has ended, or its client has
disconnected. Tests: ``tests/gateway/test_dependencies.py``.
"""

from __future__ import annotations

import io
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from citius._core import Response
from citius.web.execution.background import defer_held, held

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
    from contextlib import AbstractAsyncContextManager
    from contextvars import Context

    from citius._core import Request
    from citius.web.execution.background import Deferred

_SourceT = TypeVar("_SourceT")

NO_STREAMS: Final = frozenset((dict, list, tuple, set, str, bytes, int, float, bool, type(None)))
"""Common classes of values that are no streams."""


def swallowed() -> NoReturn:
    """Called when a dependency has caught an exception that it was to let pass."""
    raise RuntimeError(
        "a dependency has caught the exception of a handler; raise it again at the end of its `except`"
    )


DONE: Final = object()
"""What ``next`` returns for a generator that has ended."""


def yields_nothing() -> NoReturn:
    """Called when a dependency's generator has ended at its beginning."""
    raise RuntimeError("generator didn't yield")


def did_not_stop(generator: Generator[Any]) -> NoReturn:
    """Called when a dependency's generator yields again."""
    generator.close()
    raise RuntimeError("generator didn't stop")


def finish(begun: list[Any], request: Request | None) -> None:
    """Resume the generators of a call that has not failed, in reverse order of their beginning.

    One that raises raises in those before it, as in an ``ExitStack``.

    Raises:
        RuntimeError: One of them yields again.
    """
    try:
        while begun:
            generator = begun.pop()
            if next(generator, DONE) is not DONE:
                did_not_stop(generator)
    except BaseException as error:
        if not fail(begun, request, error):
            raise


def fail(begun: list[Any], request: Request | None, error: BaseException) -> bool:
    """Raise ``error`` in the generators; whether one has caught it. What was deferred is forgotten."""
    if request is not None:
        held.pop(request, None)
    stack = ExitStack()
    for one in begun:
        stack.push(contextmanager(_same)(one))
    begun.clear()
    return bool(stack.__exit__(type(error), error, error.__traceback__))


async def begin_async(begun: list[Any], generator: AsyncGenerator[Any]) -> Any:
    """What an asynchronous generator yields first.

    Raises:
        RuntimeError: It yields nothing.
    """
    value = await anext(generator, DONE)
    if value is DONE:
        yields_nothing()
    begun.append(generator)
    return value


async def enter(begun: list[Any], manager: AbstractAsyncContextManager[Any]) -> Any:
    """What a generator that is stepped in a thread yields first."""
    value = await manager.__aenter__()
    begun.append(manager)
    return value


async def finish_async(begun: list[Any], request: Request | None) -> None:
    """Resume the generators of both kinds, and leave the context managers; see `finish`.

    Raises:
        RuntimeError: One of them yields again.
    """
    try:
        while begun:
            one = begun.pop()
            if hasattr(one, "__anext__"):
                if await anext(one, DONE) is not DONE:
                    await one.aclose()
                    raise RuntimeError("generator didn't stop")
            elif hasattr(one, "__aexit__"):
                await one.__aexit__(None, None, None)
            elif next(one, DONE) is not DONE:
                one.close()
                raise RuntimeError("generator didn't stop")
    except BaseException as error:
        if not await fail_async(begun, request, error):
            raise


async def fail_async(begun: list[Any], request: Request | None, error: BaseException) -> bool:
    """Raise ``error`` in generators of both kinds and context managers; see `fail`."""
    if request is not None:
        held.pop(request, None)
    stack = AsyncExitStack()
    for one in begun:
        if hasattr(one, "__anext__"):
            stack.push_async_exit(asynccontextmanager(_same)(one))
        elif hasattr(one, "__aexit__"):
            stack.push_async_exit(one)
        else:
            stack.push(contextmanager(_same)(one))
    begun.clear()
    return bool(await stack.__aexit__(type(error), error, error.__traceback__))


def _same(generator: Any) -> Any:
    return generator


class _Exits:
    """What is to be done at the end of a stream."""

    __slots__ = ("begun", "deferred", "request")

    def __init__(self, request: Request, begun: list[Any], deferred: Deferred) -> None:
        self.request = request
        self.begun = begun
        self.deferred = deferred

    def forget(self) -> None:
        """Called when the stream is destroyed, whether it has ended or not."""
        if held.get(self.request) is self.deferred:
            del held[self.request]

    # A stream that has failed is closed afterwards, as any other: by then nothing may be deferred any more.

    def fail(self, error: BaseException) -> bool:
        self.deferred.clear()
        return fail(self.begun, self.request, error)

    def finish(self) -> None:
        try:
            finish(self.begun, self.request)
        except BaseException:
            self.deferred.clear()
            raise
        self._begin_deferred()

    async def fail_async(self, error: BaseException) -> bool:
        self.deferred.clear()
        return await fail_async(self.begun, self.request, error)

    async def finish_async(self) -> None:
        try:
            await finish_async(self.begun, self.request)
        except BaseException:
            self.deferred.clear()
            raise
        self._begin_deferred()

    def _begin_deferred(self) -> None:
        held.pop(self.request, None)
        deferred, self.deferred = self.deferred, []
        if deferred:
            defer_held(self.request, deferred)


def keep_open(
    request: Request, value: Any, begun: list[Any], deferred: Deferred, *, is_async: bool
) -> Any:
    """The stream that a handler has returned, with what is to be done at its end; ``None`` if it is none."""
    is_response = type(value) is Response
    body: Any = value.body if is_response else value
    if type(body) in NO_STREAMS:
        return None
    cls: Any = body.__class__
    has_aiter = hasattr(cls, "__aiter__")
    is_stream = has_aiter or hasattr(cls, "__next__")
    # The body of a response to HEAD is never begun, and a file is sent without Python.
    if not is_stream or isinstance(body, io.IOBase) or request.method == "HEAD":
        return None
    exits = _Exits(request, begun, deferred)
    stream = _AsyncStream(body, exits) if is_async or has_aiter else _Stream(body, exits)
    # The application may keep a response whose body can be iterated again.
    return value._with_body(stream) if is_response else stream


def follow(value: Any, context: Context) -> Any:
    """The value of a handler that has run in ``context``; its stream goes on and ends there.

    A dependency may reset a context variable after its ``yield``, which works in the context that set it.
    """
    body = value.body if type(value) is Response else value
    if type(body) is _Stream:
        body.context = context
    return value


class _Stream:
    """An iterator after whose end something is to be done."""

    __slots__ = ("_exits", "_pieces", "context")

    def __init__(self, pieces: Iterator[Any], exits: _Exits) -> None:
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
            self._exits.finish()
            raise
        except BaseException as error:
            self._exits.fail(error)
            raise

    def __del__(self) -> None:
        self._exits.forget()

    def close(self) -> None:
        """End the iterator, and do the rest."""
        if self.context is None:
            self._close()
        else:
            self.context.run(self._close)

    def _close(self) -> None:
        try:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                close()
        except BaseException as error:
            if not self._exits.fail(error):
                raise
        else:
            self._exits.finish()


class _AsyncStream:
    """An iterator on the event loop, of either kind, after whose end something is to be done."""

    __slots__ = ("_exits", "pieces")

    def __init__(self, pieces: Any, exits: _Exits) -> None:
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
        exits = self._exits
        await (exits.finish_async() if error is None else exits.fail_async(error))

    def __del__(self) -> None:
        self._exits.forget()


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
