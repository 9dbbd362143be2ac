"""Native handlers of the methods of a service: calls with one response, and calls with many messages.

A handler gives the response that connectrpc's ASGI application gives (ARCHITECTURE.md, I29); library.py
says which applications have one. Where a client sends one message, the handler is called when it is complete.
A call with one message each way is a step of the handler; the others have a task of their own from beginning
to end, because generators tie timeouts and contexts to their task. Tests: ``tests/rpc/test_rpc_paths.py``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, cast

from citius._core import Request, Response  # noqa: TC001 - resolved at the start
from citius.waiting import called_back
from citius.web.interop.connectrpc.calls import Call, Method
from citius.web.interop.connectrpc.library import Library
from citius.web.interop.connectrpc.unary import short_way
from citius.web.responses.streaming import Fed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine

    from citius._core import Stream
    from citius.web.responses.rpc_trailers import Trailers

    Handler = Callable[[Request], Coroutine[Any, Any, Response]]

_LIBRARY = Library()


def handler_of(app: Any, path: str, endpoint: Any) -> tuple[Handler, bool]:
    """The handler of a method, and whether it is called before the body is complete."""
    method = Method(app, path, endpoint)
    if method.is_unary:
        return _unary(method), False
    return _many(method), not isinstance(endpoint, _LIBRARY.server_stream)


def _unary(method: Method) -> Handler:
    async def answer(call: Call) -> Response:
        message = call.message() if call.query is None else await call.asked()
        result = await method.function()(message, call.ctx)
        await call.leave()
        return call.response(result)

    async def usual(request: Request) -> Response:
        call = Call(method, request)
        try:
            call.begin()
        except Exception as error:
            return call.failed(error)
        return await call.answered(answer)

    return short_way(method, usual)


def _many(method: Method) -> Handler:
    async def many(request: Request) -> Response:
        call = Call(method, request)
        try:
            call.begin()
        except Exception as error:
            return call.failed(error)
        return await _Answers(call).response()

    return many


class _Body(Fed):
    """The body of a response with many messages. If it is dropped unread, the task that makes them ends."""

    __slots__ = ("_answers",)

    def __init__(self, answers: _Answers) -> None:
        self._answers = answers

    async def feed(self, stream: Stream) -> None:
        """Send messages to ``stream``; returns when all have been sent."""
        await self._answers.feed(stream)

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        """For middleware that takes one piece at a time."""
        pieces = _Pieces()
        feeding = asyncio.get_running_loop().create_task(self.feed(cast("Stream", pieces)))
        feeding.add_done_callback(pieces.end)
        try:
            async for piece in pieces:
                yield piece
        finally:
            feeding.cancel()
            await asyncio.wait([feeding])
        feeding.result()

    def __del__(self) -> None:
        self._answers.drop()


class _Answers:
    """What makes the messages of a response, in a task."""

    def __init__(self, call: Call) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._call = call
        self._response: asyncio.Future[Response] | None = loop.create_future()
        self._is_begun = False
        self._opened: asyncio.Future[Stream] = loop.create_future()
        self._trailers: Trailers | None = None
        self._task = loop.create_task(self._run())
        self._task.add_done_callback(self._settle)

    async def response(self) -> Response:
        """The response, when the first message is there or the call has ended."""
        assert self._response is not None, "taken once"
        try:
            response = await self._response
        except asyncio.CancelledError:
            await self._stop()
            raise
        self._response = None  # a body that is dropped is found to be by its count
        return response

    async def feed(self, stream: Stream) -> None:
        """Send messages to ``stream``; returns when all have been sent."""
        self._opened.set_result(stream)
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            await self._stop()
            raise
        self._task.result()

    def drop(self) -> None:
        """The response was not sent: a middleware has made another one, or has raised an exception."""
        if not self._opened.done():
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._task.cancel)

    async def _stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    def _settle(self, task: asyncio.Task[None]) -> None:
        """Let the handler hear of a task that has made no response."""
        if self._response is None or self._response.done():
            return
        if task.cancelled():
            self._response.cancel()
        elif (error := task.exception()) is not None:
            self._response.set_exception(error)

    # --- in the task ----------------------------------------------------------------------------

    async def _run(self) -> None:
        call = self._call
        outcome = await call.outcome(self._serve)
        error = outcome if isinstance(outcome, Exception) else None
        if self._is_begun:
            end, self._trailers = call.end(error)
            # The time of a call may end between its header section and the stream.
            stream = await self._opened
            stream.send(end)
        elif error is not None or not isinstance(call.method.endpoint(), _LIBRARY.client_stream):
            self._respond(call.ended(b"", error))

    def _respond(self, response: Response) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_result(response)

    async def _serve(self, call: Call) -> None:
        endpoint = call.method.endpoint()
        if isinstance(endpoint, _LIBRARY.server_stream):
            return await self._send_all(endpoint.function(call.message(), call.ctx))
        async with aclosing(_messages(call.request, call.reader())) as messages:
            if isinstance(endpoint, _LIBRARY.client_stream):
                result = await endpoint.function(messages, call.ctx)
                await call.leave()
                self._respond(call.response(result))
            else:
                await self._send_all(endpoint.function(messages, call.ctx))
        return None

    async def _send_all(self, answers: Any) -> None:
        write = self._call.writer()
        stream: Stream | None = None
        try:
            async for message in answers:
                data = write(message)
                if stream is None:
                    stream = await self._begin()
                if not stream.send(data):
                    await called_back(stream.on_writable)
        finally:
            close = getattr(answers, "aclose", None)
            if close is not None:
                await close()
        await self._call.leave()

    async def _begin(self) -> Stream:
        """Send the header section, which a service may change until its first message."""
        trailers = cast("Callable[[], Trailers]", lambda: self._trailers)
        self._is_begun = True
        self._respond(self._call.begun(_Body(self), trailers))
        return await asyncio.shield(self._opened)


async def _messages(request: Request, reader: Any) -> AsyncGenerator[Any]:
    """The messages of a client, as they come."""
    with reader:
        async for data in request.stream():
            for message in reader.feed(data):
                yield message
                # A service that does not wait can be cancelled, too.
                await asyncio.sleep(0)


class _Pieces:
    """A ``Stream`` whose pieces are taken one by one."""

    def __init__(self) -> None:
        self._ready: deque[bytes] = deque()
        self._change: asyncio.Future[None] | None = None
        self._on_writable: Callable[[], object] | None = None
        self._is_over = False

    def send(self, data: bytes) -> bool:
        """Keep a piece; there is no room for another one until it is taken."""
        self._ready.append(data)
        self._wake()
        return False

    def on_writable(self, callback: Callable[[], object]) -> None:
        """Call ``callback`` when the piece has been taken."""
        self._on_writable = callback
        if not self._ready:
            self._call_back()

    def end(self, _: object) -> None:
        """There are no more."""
        self._is_over = True
        self._wake()

    def __aiter__(self) -> _Pieces:
        return self

    async def __anext__(self) -> bytes:
        while not self._ready:
            self._call_back()
            if self._is_over:
                raise StopAsyncIteration
            self._change = asyncio.get_running_loop().create_future()
            await self._change
        return self._ready.popleft()

    def _call_back(self) -> None:
        callback, self._on_writable = self._on_writable, None
        if callback is not None:
            callback()

    def _wake(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)
