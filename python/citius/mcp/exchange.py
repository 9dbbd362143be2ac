"""``Exchange``: one call that may report, log and ask before it has a result, and the stream of its response.

The response is JSON if the result is all that there is to send, and a stream of server-sent events as soon as
there is more, or nothing for a while. A client of 2026-07-28 that leaves cancels its call. One of an earlier
version does not: its call goes on for a time, and the client may come back for the rest of the stream
(streams.py). Tests: ``tests/mcp/test_context.py``, ``tests/mcp/test_resuming.py``.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from citius._core import Response
from citius.coroutines import contained
from citius.errors import HTTPError
from citius.mcp.faults import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_CAPABILITY,
    Fault,
    ToolError,
)
from citius.mcp.inputs import InputRequired
from citius.mcp.protocol import STATELESS, encode, parsed
from citius.mcp.streams import event_of, primer
from citius.web.realtime.events import EventStream
from citius.web.realtime.history import event_with_id

if TYPE_CHECKING:
    from asyncio import Future, Task
    from collections.abc import Awaitable, Sequence

    from citius._core import Request
    from citius.mcp.inputs import Input
    from citius.mcp.protocol import Level, RequestId
    from citius.mcp.server import MCPServer
    from citius.mcp.sessions import Session
    from citius.mcp.streams import KeptCall

SILENCE_S: Final = 15.0
"""After so long without a result the stream is begun, whose heartbeats keep proxies from closing it."""

DETACHED_MAX: Final = 1000
"""Calls of a worker that go on without a client that could come back. Exceeded: a call whose client leaves is
cancelled."""

STATE_S: Final = 3600
"""How long a client may take to answer the questions of a stateless request."""


class Exchange:
    """One call."""

    __slots__ = (
        "_answers", "_asked", "_backlog", "_binding", "_has_opened", "_identifier", "_is_closed", "_kept",
        "_opened", "_server", "_stream", "_task", "_waiting",
        "accepts_events", "capabilities", "least_level", "progress_token", "request", "session", "version",
    )  # fmt: skip

    def __init__(
        self,
        server: MCPServer,
        request: Request,
        version: str,
        session: Session,
        capabilities: frozenset[tuple[str, ...]],
        progress_token: RequestId | None,
        least_level: Level | None,
        accepts_events: bool,
        identifier: RequestId,
    ) -> None:
        self.request = request
        self.version = version
        self.session = session
        self.capabilities = capabilities
        self.progress_token = progress_token
        self.least_level = least_level
        self.accepts_events = accepts_events
        self._identifier = identifier
        self._server = server
        self._answers: dict[str, dict[str, Any]] = {}
        self._asked = 0
        self._backlog: list[tuple[bytes, bool]] = []
        """What there is to send before the stream has begun, and whether the call needs it to be sent."""
        self._binding = b""
        self._has_opened: Future[None] | None = None
        self._kept: KeptCall | None = None
        self._opened: Future[None] | None = None
        self._stream: EventStream | None = None
        self._task: Task[Response] | None = None
        self._waiting: set[Future[dict[str, Any]]] = set()
        self._is_closed = False

    # --- what the client hears ------------------------------------------------------------------------

    async def level(self) -> Level | None:
        """From which level on the client wants messages; ``None`` for none."""
        if self.version != STATELESS and self.least_level is None:
            self.least_level = await self._server.sessions.level(self.session)
        return cast("Level | None", self.least_level)

    def notify(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification, if the client takes streams; one that reads too slowly misses it."""
        if not self.accepts_events or self._is_closed:
            return
        self._send(encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def _send(self, message: bytes, *, is_needed: bool = False) -> None:
        """Send a message, once the stream has begun.

        Args:
            message: What is sent.
            is_needed: The call could not go on without it, so no queue bounds it.
        """
        stream = self._stream
        if stream is None:
            self._backlog.append((message, is_needed))
            if self._opened is not None and not self._opened.done():
                self._opened.set_result(None)
            return
        data = event_of(message)
        if self._kept is not None:
            identifier = self._kept.put(message, is_needed=is_needed)
            if identifier is None:
                return
            data = event_with_id(identifier, data)
        if stream.is_closed:
            return
        if is_needed:
            stream._push(data)  # pyright: ignore[reportPrivateUsage]
        else:
            stream.send_encoded(data)

    async def _open(self) -> EventStream:
        """Begin the stream, with what there is to send."""
        kept = await self._server.streams.begin(self.session, self._identifier, self._on_end)
        stream = EventStream(on_close=self._on_close, slow="drop")
        self._stream, self._kept = stream, kept
        if kept is not None:
            stream._push(primer(kept, self.version))  # pyright: ignore[reportPrivateUsage]
        backlog, self._backlog = self._backlog, []
        for message, is_needed in backlog:
            self._send(message, is_needed=is_needed)
        if self._has_opened is not None:
            self._has_opened.set_result(None)
        return stream

    def _on_close(self, stream: EventStream) -> None:
        """The client has left, or all has been sent."""
        if self._kept is not None:
            self._kept.unread()
            return
        self._end_questions()
        if self._task is not None and not self._task.done():
            self._leave(self._task)

    def _on_end(self) -> None:
        """The run is over: nothing can be sent any more."""
        self._end_questions()
        if self._task is not None and not self._task.done():
            self._task.cancel()

    def _end_questions(self) -> None:
        self._is_closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result({"error": {"message": "the client has left"}})

    async def close_stream(self, retry_s: float) -> None:
        """Close the connection of a client that can come back, so that none is held while the call waits."""
        if not self.session.key or not self.accepts_events or self._is_closed:
            return
        if self._stream is None:
            self._has_opened = asyncio.get_running_loop().create_future()
            if self._opened is not None and not self._opened.done():
                self._opened.set_result(None)
            await self._has_opened
        stream = self._stream
        if self._kept is None or stream is None or stream.is_closed:
            return
        stream._push(b"retry: %d\n\n" % round(1000 * retry_s))  # pyright: ignore[reportPrivateUsage]
        stream.close()

    def _leave(self, task: Task[Response]) -> None:
        """Go on without a client, or end."""
        detached = self._server.detached
        if self.version == STATELESS or len(detached) >= DETACHED_MAX:
            task.cancel()
        else:
            detached.add(task)
            task.add_done_callback(detached.discard)

    async def respond(self, work: Awaitable[Response]) -> Response:
        """The response to the request: what ``work`` makes, or a stream that ends with it.

        Args:
            work: Makes a response in JSON.
        """
        loop = asyncio.get_running_loop()
        self._opened = loop.create_future()
        task = self._task = loop.create_task(contained(lambda: work))
        if self.session.key:
            self._let_cancel(task)
        try:
            await asyncio.wait(
                (task, self._opened), timeout=SILENCE_S, return_when=asyncio.FIRST_COMPLETED
            )
            while not task.done() and not self._opened.done() and not self.accepts_events:
                await asyncio.wait((task,))
            if task.done() and not self._backlog:
                return nothing() if task.cancelled() else task.result()
            stream = await self._open()
        except asyncio.CancelledError:
            self._is_closed = True
            self._leave(task)
            raise
        task.add_done_callback(self._finish)
        return stream.response()

    def _let_cancel(self, task: Task[Response]) -> None:
        """Have the call cancelled by its session and identifier."""
        running, key = self._server.running, (self.session.key, self._identifier)
        running[key] = task

        def forget(task: Task[Response]) -> None:
            # A client may have used the identifier again.
            if running.get(key) is task:
                del running[key]

        task.add_done_callback(forget)

    def _finish(self, task: Task[Response]) -> None:
        """Send the result, and end the stream."""
        stream = self._stream
        assert stream is not None, "it was opened before"
        if not task.cancelled() and not self._is_closed:
            error = task.exception()
            body = task.result().body if error is None else self._failure(error)
            assert isinstance(body, bytes), "as the server makes responses"
            self._send(body, is_needed=True)
        if self._kept is not None:
            self._kept.end()
        stream.close()

    def _failure(self, error: BaseException) -> bytes:
        """The message of a call that has failed after its stream had begun."""
        is_refused = isinstance(error, HTTPError)
        text = "the request was refused" if is_refused else "the server failed"
        fault = error if isinstance(error, Fault) else Fault(INTERNAL_ERROR, text)
        return encode({"jsonrpc": "2.0", "id": self._identifier, "error": fault.error()})

    # --- what the client is asked -----------------------------------------------------------------------

    def resume(
        self,
        binding: bytes,
        state: str | None,
        responses: dict[str, dict[str, Any]] | None,
    ) -> None:
        """Take the answers that a stateless request has brought.

        Args:
            binding: What tells the request from others.
            state: What the client was given with the questions.
            responses: Its answers.

        Raises:
            Fault: The state is not what it was given, or belongs to another request.
        """
        self._binding = hashlib.sha256(binding).digest()[:12]
        if state is not None:
            signer = self._server.sessions.states
            assert signer is not None, "opened when the application was frozen"
            payload = signer.verify(state)
            if payload is None or payload[:12] != self._binding:
                raise Fault(
                    INVALID_PARAMS, "the requestState is not that of this request, or has expired"
                )
            self._answers.update(parsed(payload[12:]))
        self._answers.update(responses or {})

    def required(self, asked: InputRequired) -> bytes:
        """The result that asks for what is missing, without its end."""
        signer = self._server.sessions.states
        assert signer is not None, "opened when the application was frozen"
        requests = {
            key: {"method": one.method, "params": one.params()}
            for key, one in asked.requests.items()
        }
        state = signer.sign(self._binding + encode(asked.answers), STATE_S)
        return encode({"inputRequests": requests, "requestState": state})[:-1]

    async def ask(self, inputs: Sequence[Input]) -> list[Any]:
        """A value for each of what the client is asked for."""
        for one in inputs:
            self._check(one)
        if self.version == STATELESS:
            return self._answered(inputs)
        results = await self._ask_now(inputs)
        return [one.read(result) for one, result in zip(inputs, results, strict=True)]

    def _check(self, one: Input) -> None:
        capability = one.capability
        if capability in self.capabilities:
            return
        wanted: dict[str, Any] = {}
        for name in reversed(capability):
            wanted = {name: wanted}
        text = f"the client has not declared the capability {'.'.join(capability)}"
        if self.version == STATELESS:
            raise Fault(MISSING_CAPABILITY, text, {"requiredCapabilities": wanted})
        raise Fault(INVALID_REQUEST, text)

    def _answered(self, inputs: Sequence[Input]) -> list[Any]:
        """The values of inputs from the responses that the client has sent.

        Raises:
            InputRequired: Some are missing.
        """
        keys: list[str] = []
        for one in inputs:
            self._asked += 1
            keys.append(getattr(one, "key", None) or f"q{self._asked}")
        missing = {
            key: one for key, one in zip(keys, inputs, strict=True) if key not in self._answers
        }
        if missing:
            raise InputRequired(missing, self._answers)
        return [one.read(self._answers[key]) for key, one in zip(keys, inputs, strict=True)]

    async def _ask_now(self, inputs: Sequence[Input]) -> list[dict[str, Any]]:
        """The results of requests on the stream of the response."""
        if not self.accepts_events or self._is_closed:
            raise ToolError("the client reads no stream that it could be asked on")
        loop, pending = asyncio.get_running_loop(), self._server.pending
        futures: dict[str, Future[dict[str, Any]]] = {}
        try:
            for one in inputs:
                identifier = self._server.next_id()
                futures[identifier] = future = loop.create_future()
                pending[identifier] = future, self.session.key
                self._waiting.add(future)
                message = {
                    "jsonrpc": "2.0", "id": identifier, "method": one.method, "params": one.params()
                }  # fmt: skip
                self._send(encode(message), is_needed=True)
            _, late = await asyncio.wait(futures.values(), timeout=self._server.answer_s)
            if late:
                raise ToolError("the client has not answered in time")
        finally:
            for identifier, future in futures.items():
                pending.pop(identifier, None)
                self._waiting.discard(future)
        return [self._result(future.result()) for future in futures.values()]

    def _result(self, response: dict[str, Any]) -> dict[str, Any]:
        error = response.get("error")
        if error is not None:
            is_whole = isinstance(error, dict)
            said = cast("dict[str, Any]", error).get("message") if is_whole else error
            raise ToolError(f"the client has refused: {said}")
        result = response.get("result")
        if not isinstance(result, dict):
            raise ToolError("the client has sent a result that is no object")
        return cast("dict[str, Any]", result)


def nothing() -> Response:
    """The response to a request that was cancelled: no message."""
    return Response(b"", 200, None, "text/event-stream")


def binding_of(method: str, name: str, arguments: object) -> bytes:
    """What tells a request from others, whatever order its arguments are written in."""
    return msgspec.json.encode([method, name, arguments], order="deterministic")
