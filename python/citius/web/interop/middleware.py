"""ASGI middleware inside a native application: ``App.add_middleware``.

The middleware is called with a scope made of the request, in the request's context; what it calls in turn
is the rest of the native chain, as one ASGI application. What it puts into the scope is there for handlers
(``asgi_scope``). It hears of exceptions that no handler expects as it does under Starlette: they are raised
again after their response. For a WebSocket or a session it is called once, with its scope: it refuses, or
calls what is inside, whose messages do not pass it. Tests: ``tests/interop/test_middleware.py``,
``tests/frameworks/test_asgi_middleware.py``.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, cast

from citius._core import FileBody, Request, Response, WebSocket, prefers_msgpack
from citius.errors import ConfigError
from citius.unknown_options import caller
from citius.web.declarations import codecs
from citius.web.declarations.checks import describe
from citius.web.interop.calls import BODY, REPORTED, TRAILERS, respond
from citius.web.interop.scopes import KEY, asgi_scope, scope_of, state_of
from citius.web.interop.socket_messages import SocketMessages
from citius.web.middleware.base import Middleware, OnConnections
from citius.web.middleware.fields import add_vary
from citius.web.responses.streaming import Driven

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from citius.web.interop.scopes import ASGIApplication, Message, Receive, Scope, Send
    from citius.web.middleware.base import AsyncNextConnection, Connection, Socket

    Report = Callable[[Request, BaseException], object]
    Next = Callable[[Request], Awaitable[Response]]

# The key of a scope that leads from the innermost application back to the native request.
_NATIVE = "citius"
# Where a request's state keeps an exception that has been reported.
_ERROR = "asgi_error"


def native_middleware(
    middleware: Callable[..., ASGIApplication], args: tuple[Any, ...], options: dict[str, Any]
) -> OnConnections:
    """The native middleware that a class of ASGI middleware is.

    Raises:
        ConfigError: It is no ASGI middleware.
    """
    cls = middleware if isinstance(middleware, type) else type(middleware)
    if issubclass(cls, Middleware):
        raise ConfigError(
            f"app.add_middleware ({caller()}) is for ASGI middleware; write app.middleware({cls.__name__}(…))"
        )
    if not callable(middleware):
        raise ConfigError(
            f"app.add_middleware ({caller()}) takes what makes ASGI middleware, got {middleware!r}"
        )
    _check_call(middleware, args, options)
    made = middleware(_innermost, *args, **options)
    tasks: set[asyncio.Task[None]] = set()

    async def asgi_middleware(
        connection: Connection, call_next: AsyncNextConnection
    ) -> Response | None:
        if not isinstance(connection, Request):
            return await _around_socket(made, connection, call_next)
        scope = _scope_around(connection, "http")
        scope[_NATIVE] = (connection, call_next)
        return await respond(made, scope, connection, tasks, cancels=True)

    name = getattr(middleware, "__qualname__", repr(middleware))
    asgi_middleware.__qualname__ = asgi_middleware.__name__ = f"add_middleware({name})"
    return OnConnections(asgi_middleware)


def _check_call(middleware: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Refuse arguments that an ASGI middleware does not take.

    Raises:
        ConfigError: There is one, or one is missing.
    """
    try:
        signature = inspect.signature(middleware)
    except (TypeError, ValueError):
        return  # some functions in C do not tell
    try:
        signature.bind(_innermost, *args, **options)
    except TypeError as error:
        raise ConfigError(
            f"app.add_middleware ({caller()}): {describe(middleware)} is called with an application and what "
            f"is given here, and takes {signature}: {error}"
        ) from None


def _scope_around(request: Request, kind: str) -> dict[str, Any]:
    """The scope for a middleware: that of the one around it, or a new one."""
    outer = asgi_scope(request)
    if outer is None:
        scope = scope_of(request, kind)
        scope["state"] = {}
    else:
        scope = dict(outer)
    state_of(request)[KEY] = scope
    return scope


async def _around_socket(
    made: ASGIApplication, socket: Socket, call_next: AsyncNextConnection
) -> Response | None:
    """Call the middleware once for a WebSocket or a session: it refuses, or calls what is inside."""
    kind = "websocket" if isinstance(socket, WebSocket) else "webtransport"
    messages = SocketMessages(socket, kind)
    scope = _scope_around(socket.request, kind)
    scope["extensions"] = {f"{kind}.http.response": {}}
    scope["subprotocols"] = list(socket.subprotocols)
    scope[_NATIVE] = (socket, call_next, messages)
    await made(scope, messages.receive, messages.send)
    return messages.outcome()


def noting(report: Report) -> Report:
    """``report``, which also keeps the exception for the ASGI middleware around it."""

    def note(request: Request, error: BaseException) -> None:
        state_of(request)[_ERROR] = error
        report(request, error)

    return note


async def _innermost(scope: Scope, receive: Receive, send: Send) -> None:
    """The rest of the native chain as an ASGI application."""
    if scope["type"] in ("websocket", "webtransport"):
        socket, call_socket, messages = cast(
            "tuple[Socket, AsyncNextConnection, SocketMessages]", scope[_NATIVE]
        )
        state_of(socket.request)[KEY] = scope
        messages.note_outcome(await call_socket(socket))
    if scope["type"] != "http":
        return
    request, call_next = cast("tuple[Request, Next]", scope[_NATIVE])
    state_of(request)[KEY] = scope
    response = await call_next(request)
    async with aclosing(_messages(request, response)) as messages:
        async for message in messages:
            await send(message)
    state = state_of(request)
    error: BaseException | None = state.pop(_ERROR, None)
    if error is not None:
        state[REPORTED] = True
        raise error


async def _messages(request: Request, response: Response) -> AsyncGenerator[Message]:
    """The response as ASGI has it."""
    body: Any = response.body
    cls = cast("type[Any]", type(body))
    is_stream = hasattr(cls, "__aiter__") or hasattr(cls, "__next__")
    if is_stream or isinstance(body, FileBody):
        whole, content_type = b"", response.content_type
    else:
        whole, content_type = _whole(request, response)
    headers = [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in response.headers.multi_items()
    ]
    if content_type is not None:
        headers.append((b"content-type", content_type.encode("latin-1")))
    start: Message = {
        "type": "http.response.start", "status": response.status_code, "headers": headers,
    }  # fmt: skip
    if response.trailers is not None:
        start[TRAILERS] = response.trailers
    if isinstance(body, FileBody):
        yield start
        yield {"type": "http.response.body", "body": b"", BODY: body}
    elif is_stream:
        yield start
        async with aclosing(_pieces(body)) as pieces:
            async for piece in pieces:
                data = piece.encode() if isinstance(piece, str) else bytes(piece)
                yield {"type": "http.response.body", "body": data, "more_body": True}
        yield {"type": "http.response.body", "body": b""}
    else:
        if response.status_code not in (204, 304) and b"content-length" not in dict(headers):
            headers.append((b"content-length", str(len(whole)).encode()))
        yield start
        yield {"type": "http.response.body", "body": whole}


def _whole(request: Request, response: Response) -> tuple[bytes, str | None]:
    """The body as the extension would encode it, and its media type."""
    body: Any = response.body
    content_type = response.content_type
    if body is None:
        return b"", content_type
    if isinstance(body, str):
        return body.encode(), content_type or "text/plain; charset=utf-8"
    if isinstance(body, bytes | bytearray) or type(body) is memoryview:
        whole = bytes(body)
        return whole, content_type or ("application/octet-stream" if whole else None)
    if content_type is not None:
        return codecs.encode_json(body), content_type
    add_vary(response, "accept")
    if prefers_msgpack(request.header("accept", "")):
        return codecs.encode_as_msgpack(body), "application/msgpack"
    return codecs.encode_json(body), "application/json"


async def _pieces(body: Any) -> AsyncGenerator[Any]:
    """The pieces of an iterator; of one that may block from a thread."""
    try:
        if hasattr(cast("type[Any]", type(body)), "__aiter__"):
            async for piece in body:
                yield piece
        elif isinstance(body, Driven):
            end, iterator = object(), cast("Any", body)
            while (piece := await asyncio.to_thread(next, iterator, end)) is not end:
                yield piece
        else:
            for piece in body:
                yield piece
    finally:
        aclose = getattr(body, "aclose", None)
        close = getattr(body, "close", None)
        if aclose is not None:
            await aclose()
        elif close is not None:
            close()
