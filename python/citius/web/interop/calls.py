"""One call of an ASGI application by a native handler: a request in, a ``Response`` out.

The application runs in a task of its own from beginning to end, because it may go on after its response and
may tie contexts and cancel scopes to its task. Its messages become one ``Response``: whole if they are one,
streamed with the client's pace if they are several. Tests: ``tests/interop/test_mounts.py``,
``tests/interop/test_middleware.py``.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from citius._core import Response
from citius.errors import ClientDisconnected
from citius.observability.logging import log, log_exception
from citius.web.binding.headers import OF_CONNECTION
from citius.web.interop.scopes import state_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from citius._core import Request
    from citius.web.interop.scopes import ASGIApplication, Message, Scope

# What a message of our own carries besides what ASGI says: the native body that its empty one stands for.
BODY = "citius.body"
TRAILERS = "citius.trailers"
# How a remote procedure call has ended (connectrpc/status.py).
RPC_STATUS = "citius.rpc_status"


# Seconds in which messages are ignored without a turn of the event loop when the client has gone.
_IGNORED_AT_ONCE_S = 0.02

# Messages that are ignored with one, before `send` raises all the same.
_IGNORED_MAX = 1000

# Where a request's state says that its handler's exception has been reported.
REPORTED = "asgi_reported"


async def respond(
    app: ASGIApplication,
    scope: Scope,
    request: Request,
    tasks: set[asyncio.Task[None]],
    *,
    cancels: bool = False,
) -> Response:
    """The response of ``app``.

    Args:
        app: The application.
        scope: What it is called with.
        request: The request that the scope was made of; its body is read when the application asks for it.
        tasks: Where its task is kept while it runs.
        cancels: Cancel it if the client leaves, as a native handler; otherwise it hears ``http.disconnect``.

    Raises:
        Exception: What the application has raised instead of a response.
    """
    call = _Call(request)
    task = asyncio.get_running_loop().create_task(call.run(app, scope))
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    if cancels:
        call.task = task
    try:
        return await call.response
    except asyncio.CancelledError:
        call.leave()
        raise


class _Call:
    """What ``receive`` and ``send`` of one call share."""

    def __init__(self, request: Request) -> None:
        loop = asyncio.get_running_loop()
        self.response: asyncio.Future[Response] = loop.create_future()
        self.task: asyncio.Task[None] | None = None
        self._request = request
        self._gone = asyncio.Event()
        self._start: Message | None = None
        self._is_streaming = False
        self._is_ended = False
        self._trailers: list[tuple[str, str]] | None = None
        """What has come of the trailer section, once the body is over and there is to be one."""
        self._ignored_since: float | None = None
        self._n_ignored = 0
        self._pieces_ready: asyncio.Queue[bytes | BaseException | None] = asyncio.Queue(1)
        self._body_ended = False
        self._has_left = False
        """The client has, before its whole body had come, and the application was told so."""
        self._body: AsyncIterator[bytes] | None = None

    async def run(self, app: ASGIApplication, scope: Scope) -> None:
        """Call the application, and see to it that there is a response or an exception."""
        error: BaseException | None = None
        try:
            await app(scope, self._receive, self._send)
        except BaseException as raised:
            error = raised
        if not self._is_ended and (self._has_left or self._gone.is_set()):
            if isinstance(error, Exception):
                log(10, self._message(f": after the client had gone: {error!r}"))
            if self._is_streaming:
                await self._put(ClientDisconnected())
            elif not self.response.done():
                self._fail(ClientDisconnected())
        elif self._is_ended or self._gone.is_set():
            # What a handler has raised comes by again when its response is complete.
            if (
                isinstance(error, Exception)
                and not isinstance(error, OSError)
                and REPORTED not in state_of(self._request)
            ):
                log_exception(self._message(": the application failed after its response"), error)
        elif self._is_streaming:
            await self._put(
                error or RuntimeError("the application ended before its response was complete")
            )
        elif not self.response.done():
            self._fail(error or RuntimeError("the application ended without a response"))
        if isinstance(error, asyncio.CancelledError):
            raise error

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, asyncio.CancelledError):
            self.response.cancel()
        elif isinstance(error, StopIteration):
            self.response.set_exception(RuntimeError(f"the application raised {error!r}"))
        else:
            self.response.set_exception(error)

    def _message(self, what: str) -> str:
        return self._request._message(what)  # pyright: ignore[reportPrivateUsage]

    def leave(self) -> None:
        """The client has left, or has got everything."""
        self._gone.set()
        while not self._pieces_ready.empty():
            self._pieces_ready.get_nowait()
        if self.task is not None and not self._is_ended:
            self.task.cancel()

    # --- what the application calls -------------------------------------------------------------

    async def _receive(self) -> Message:
        if not self._body_ended and not self._gone.is_set():
            return await self._next_of_body()
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _next_of_body(self) -> Message:
        body, goes_on = b"", False
        try:
            if self._body is None:
                try:
                    body = self._request.body()
                except RuntimeError:
                    self._body = aiter(self._request.stream())
            if self._body is not None:
                body, goes_on = await anext(self._body), True
        except StopAsyncIteration:
            pass
        except ClientDisconnected:
            self._body_ended = self._has_left = True
            return {"type": "http.disconnect"}
        self._body_ended = not goes_on
        return {"type": "http.request", "body": body, "more_body": goes_on}

    async def _send(self, message: Message) -> None:
        if self._gone.is_set() and not self._is_ended:
            # What `scopes.ASGI` announces: a message that comes too late does nothing.
            await self._ignore()
            return
        self._check(message["type"])
        if self._trailers is not None:
            return await self._take_trailers(self._trailers, message)
        if self._start is None:
            self._start = message
            return
        body, goes_on = bytes(message.get("body", b"")), bool(message.get("more_body", False))
        if self._start.get("trailers") and not goes_on:
            self._trailers, goes_on = [], True
        if self._is_streaming:
            if body:
                await self._put(body)
        elif goes_on:
            self._is_streaming = True
            self._begin(self._pieces())
            await self._put(body)
        elif (native := message.get(BODY)) is not None:
            if body:
                raise RuntimeError("middleware cannot change the body of a file's response")
            self._begin(native)
        else:
            self._begin(body)
        if not goes_on:
            self._is_ended = True
            if self._is_streaming and not self._has_no_body:
                await self._put(None)
            else:
                self._gone.set()

    def _check(self, kind: str) -> None:
        """Refuse a message that does not come now."""
        expected = "http.response.start" if self._start is None else "http.response.body"
        if self._trailers is not None:
            expected = "http.response.trailers"
        if kind != expected or self._is_ended:
            expected = "nothing more" if self._is_ended else repr(expected)
            raise RuntimeError(f"expected {expected} from the application, got {kind!r}")

    async def _take_trailers(self, taken: list[tuple[str, str]], message: Message) -> None:
        """Fields behind the body, which end the response."""
        taken += [
            (bytes(name).decode("latin-1"), bytes(value).decode("latin-1"))
            for name, value in message.get("headers", ())
        ]
        if not message.get("more_trailers", False):
            self._is_ended = True
            if self._has_no_body:
                self._gone.set()
            else:
                await self._put(None)

    async def _ignore(self) -> None:
        """Let what waits for ``http.disconnect`` have its turn, at first where the source waits."""
        now = time.monotonic()
        if self._ignored_since is None:
            self._ignored_since = now
        if now - self._ignored_since < _IGNORED_AT_ONCE_S:
            return
        self._n_ignored += 1
        if self._n_ignored > _IGNORED_MAX:
            raise ClientDisconnected
        await asyncio.sleep(0)

    def _begin(self, body: Any) -> None:
        """Let the handler return the response."""
        start = self._start
        assert start is not None, "a body comes after it"
        status = start.get(RPC_STATUS)
        if status is not None and isinstance(body, bytes) and status.code is not None:
            body = _one_piece(body)  # behind which the code is told
        content_type: str | None = None
        headers: list[tuple[str, str]] = []
        for raw_name, raw_value in start.get("headers", ()):
            name, value = (
                bytes(raw_name).decode("latin-1").lower(),
                bytes(raw_value).decode("latin-1"),
            )
            if name == "content-type" and content_type is None:
                content_type = value
            elif name not in OF_CONNECTION and (
                name != "content-length" or self._needs_length(body)
            ):
                headers.append((name, value))
        trailers = start.get(TRAILERS)
        if start.get("trailers"):
            trailers = lambda: self._trailers or ()  # noqa: E731
        if status is not None:
            trailers = lambda: status.trailers(self._trailers or ())  # noqa: E731
        if not self.response.done():
            self.response.set_result(
                Response(body, start["status"], headers, content_type, trailers=trailers)
            )

    def _needs_length(self, body: Any) -> bool:
        """Whether the length that the application says is not known otherwise."""
        return not isinstance(body, bytes) or (not body and self._request.method == "HEAD")

    @property
    def _has_no_body(self) -> bool:
        """Whether the server drops the body without asking for a piece of it (RFC 9110 §6.4.1)."""
        assert self._start is not None, "a body comes after it"
        return self._request.method == "HEAD" or self._start["status"] in (204, 304)

    async def _put(self, piece: bytes | BaseException | None) -> None:
        """Hand on a piece, and wait while the one before has not been taken."""
        if not self._gone.is_set() and not self._has_no_body:
            await self._pieces_ready.put(piece)

    async def _pieces(self) -> AsyncIterator[bytes]:
        try:
            while (piece := await self._pieces_ready.get()) is not None:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        finally:
            self.leave()


async def _one_piece(body: bytes) -> AsyncIterator[bytes]:
    yield body
