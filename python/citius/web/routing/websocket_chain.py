"""Middleware around WebSockets and sessions: a handler in, a function of the socket with all around it out.

``next`` returns ``None`` for a WebSocket that was accepted, once its handler has ended, and a ``Response``
for one that was refused, whatever refused it. What fails after the acceptance is raised: there is nothing to
send a response with. Middleware for requests gets the request that opens the socket, and 200 in place of
``None``. Made when the application is frozen, only where there is something to compose. Requests
are in request_chain.py. Tests: tests/middleware/test_connections.py.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from citius._core import Response
from citius.web.declarations.checks import refuse_status
from citius.web.declarations.type_kinds import is_async
from citius.web.middleware.base import Middleware, OnConnections, OnRequests
from citius.web.routing.request_chain import Failures, Pending, awaited, finish

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from citius.web.binding.signature import Kind
    from citius.web.execution.thread_pool import BlockingPool
    from citius.web.middleware.base import Socket
    from citius.web.routing.endpoint import Endpoint

    Function: TypeAlias = Callable[..., Any]
    Part: TypeAlias = Middleware | Function
    Chain: TypeAlias = Callable[[Socket], Response | None]
    AsyncChain: TypeAlias = Callable[[Socket], Awaitable[Response | None]]

METHOD = "WEBSOCKET"
"""What ``Middleware.bind`` gets as the method of a path of WebSockets or of sessions."""


def around_sockets(endpoint: Endpoint, kind: Kind) -> tuple[Part, ...]:
    """What of the middleware is called for the WebSockets or sessions of a path."""
    bound: list[Part] = []
    for one in endpoint.middleware:
        here: object = one
        if isinstance(one, Middleware):
            here = one.bind_kind(kind, METHOD, endpoint.pattern, endpoint.handler)
        if here is None or isinstance(here, OnRequests):
            continue
        if isinstance(here, OnConnections):
            bound.append(here.function)
        elif not isinstance(here, Middleware):
            bound.append(_on_opening(cast("Function", here)))
        elif here.socket_steps or not here.requests_only:
            bound.append(here)
    return tuple(bound)


def _on_opening(function: Function) -> Function:
    """A function of ``(request, next)`` as connection middleware: it gets the request that opens a socket."""

    @functools.wraps(function)
    def around(socket: Socket, inner: Function) -> Any:
        def call(_: object) -> Any:
            return _as_response(inner(socket))

        return function(socket.request, call)

    @functools.wraps(function)
    async def around_async(socket: Socket, inner: Function) -> Any:
        async def call(_: object) -> Response:
            return _as_response(await inner(socket))

        return await function(socket.request, call)

    return around_async if is_async(function) else around


def _as_response(value: Any) -> Any:
    """What middleware for requests gets for a socket: 200 for one that was accepted, and is over."""
    return Response() if value is None else value


def compose_socket(
    endpoint: Function,
    kind: Kind,
    middleware: tuple[Part, ...],
    failures: Failures,
    pool: BlockingPool | None,
) -> tuple[Function, Kind]:
    """The handler of a path, error handlers, then middleware from the inside out."""
    handler = endpoint
    has_async_errors = any(handlers.any_async for handlers in failures.errors)
    if kind == "blocking" and (has_async_errors or any(map(_is_async, middleware))):
        assert pool is not None, "a blocking handler has made freeze ask for a pool"
        endpoint, kind = pool.as_async(endpoint), "async"
    is_async = kind == "async"
    chain: Function = (_guard_async if is_async else _guard)(endpoint, failures, handler)
    for one in reversed(middleware):
        if isinstance(one, Middleware) and one.socket_steps:
            chain = (_around_halves_async if is_async else _around_halves)(one, chain, failures)
        elif isinstance(one, Middleware):
            chain = (_around_request_async if is_async else _around_request)(one, chain, failures)
        elif not is_async:
            chain = _around(one, chain, failures)
        elif _is_async(one):
            chain = _around_async(one, chain, failures)
        else:
            chain = _around_async(awaited(one), _pending(one, chain), failures)
    return chain, kind


def _is_async(one: Part) -> bool:
    steps = (one.socket_steps or one.steps) if isinstance(one, Middleware) else (one,)
    return any(map(is_async, steps))


def is_undecided(socket: Any) -> bool:
    """Whether it is neither accepted nor over, so that a response can still be sent."""
    return not socket.is_open and socket.close_code is None


def _outcome(socket: Socket, value: Any, function: Function) -> Response | None:
    """What a function made of a WebSocket; one that was neither accepted nor refused is refused."""
    if not is_undecided(socket):
        return None
    if value is None:
        return Response("Forbidden", 403)
    if type(value) is not Response:
        refuse_status(value, function)
    return socket.request._own(value)  # pyright: ignore[reportPrivateUsage]


def _guard(endpoint: Function, failures: Failures, function: Function) -> Chain:
    def guarded(socket: Socket) -> Response | None:
        try:
            return _outcome(socket, endpoint(socket), function)
        except Exception as error:
            if not is_undecided(socket):
                raise
            return failures.respond(socket.request, error)

    return guarded


def _guard_async(endpoint: Function, failures: Failures, function: Function) -> AsyncChain:
    async def guarded(socket: Socket) -> Response | None:
        try:
            return _outcome(socket, await finish(endpoint(socket)), function)
        except Exception as error:
            if not is_undecided(socket):
                raise
            return await failures.respond_async(socket.request, error)

    return guarded


def _around(function: Function, inner: Chain, failures: Failures) -> Chain:
    def call(socket: Socket) -> Any:
        return function(socket, inner)

    return _guard(call, failures, function)


def _around_async(function: Function, inner: Function, failures: Failures) -> AsyncChain:
    def call(socket: Socket) -> Any:
        return function(socket, inner)

    return _guard_async(call, failures, function)


def _pending(function: Function, inner: Function) -> Function:
    """For a ``def`` around a coroutine: it gets something to hand on, not to look into."""

    def pending(socket: Socket) -> Pending:
        coroutine: Coroutine[Any, Any, Any] = inner(socket)
        return Pending(coroutine, function)

    return pending


def _around_halves(one: Middleware, inner: Chain, failures: Failures) -> Chain:
    def connected(socket: Socket) -> Any:
        refusal = one.connect(socket)
        if refusal is not None:
            return refusal
        try:
            return inner(socket)
        finally:
            one.disconnect(socket)

    return _guard(connected, failures, one.connect)


def _around_halves_async(one: Middleware, inner: Function, failures: Failures) -> AsyncChain:
    """A middleware in two halves around a coroutine; each half may be a coroutine function."""

    async def connected(socket: Socket) -> Any:
        refusal = await finish(one.connect(socket))
        if refusal is not None:
            return refusal
        try:
            return await inner(socket)
        finally:
            await finish(one.disconnect(socket))

    return _guard_async(connected, failures, one.connect)


def _around_request(one: Middleware, inner: Chain, failures: Failures) -> Chain:
    """A middleware for requests: its halves see the request that opens the socket."""

    def opened(socket: Socket) -> Any:
        refusal = one.before(socket.request)
        if refusal is not None:
            return refusal
        return one.after(socket.request, _as_response(inner(socket)))

    return _guard(opened, failures, one.after)


def _around_request_async(one: Middleware, inner: Function, failures: Failures) -> AsyncChain:
    """A middleware for requests around a coroutine; each half may be a coroutine function."""

    async def opened(socket: Socket) -> Any:
        refusal = await finish(one.before(socket.request))
        if refusal is not None:
            return refusal
        return await finish(one.after(socket.request, _as_response(await inner(socket))))

    return _guard_async(opened, failures, one.after)
