"""Native handlers of the methods of a service: calls with one response, and calls with many messages.

A handler gives the response that connectrpc's ASGI application gives (ARCHITECTURE.md, I29); rpc_library.py
says which applications have one. Where a client sends one message, the handler is called when it is complete.
A call with one message each way is a step of the handler; the others have a task of their own from beginning
to end, because generators tie timeouts and contexts to their task. Tests: ``tests/rpc/test_rpc_paths.py``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from citius._core import Request, Response  # noqa: TC001 - resolved at the start
from citius.waiting import called_back
from citius.web.interop.rpc_calls import Call, Method
from citius.web.interop.rpc_library import Library
from citius.web.interop.rpc_short import short_way
from citius.web.responses.streaming import Fed

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine

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


class _Answers(Fed):
    """The body of a response with many messages, and the task that makes them."""

    def __init__(self, call: Call) -> None:
        loop = asyncio.get_running_loop()
        self._call = call
        self._response: asyncio.Future[Response] = loop.create_future()
        self._opened: asyncio.Future[Stream] = loop.create_future()
        self._stream: Stream | None = None
        self._trailers: Trailers | None = None
        self._task = loop.create_task(self._run())
        self._task.add_done_callback(self._settle)

    async def response(self) -> Response:
        """The response, when the first message is there or the call has ended."""
        try:
            return await self._response
        except asyncio.CancelledError:
            await self._stop()
            raise

    async def feed(self, stream: Stream) -> None:
        """Send messages to ``stream``; returns when all have been sent."""
        self._opened.set_result(stream)
        try:
            await asyncio.wait([self._task])
        except asyncio.CancelledError:
            await self._stop()
            raise
        self._task.result()

    def __aiter__(self) -> AsyncIterator[bytes]:
        """For middleware that takes one piece at a time."""
        return self._pieces()

    async def _pieces(self) -> AsyncGenerator[bytes]:
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

    async def _stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    def _settle(self, task: asyncio.Task[None]) -> None:
        """Let the handler hear of a task that has made no response."""
        if self._response.done():
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
        if self._response.done():
            if self._stream is not None:
                end, self._trailers = call.end(error)
                self._stream.send(end)
        else:
            self._response.set_result(call.ended(b"", error))

    async def _serve(self, call: Call) -> None:
        endpoint = call.method.endpoint()
        if isinstance(endpoint, _LIBRARY.server_stream):
            return await self._send_all(endpoint.function(call.message(), call.ctx))
        async with aclosing(_messages(call.request, call.reader())) as messages:
            if isinstance(endpoint, _LIBRARY.client_stream):
                result = await endpoint.function(messages, call.ctx)
                await call.leave()
                self._response.set_result(call.response(result))
            else:
                await self._send_all(endpoint.function(messages, call.ctx))
        return None

    async def _send_all(self, answers: Any) -> None:
        try:
            async for message in answers:
                data = self._call.write(message)
                stream = self._stream or await self._begin()
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
        self._response.set_result(self._call.begun(self, trailers))
        self._stream = await self._opened
        return self._stream


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
