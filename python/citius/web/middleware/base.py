"""``Middleware``: the class of middleware that has two halves, and the types of all middleware.

A function of ``(request, next)`` is middleware too. The class is for middleware that serves ``def`` and
``async def`` handlers alike: compose.py calls ``before`` and ``after`` around whatever is inside, in a
coroutine where there is one and without one elsewhere; connections.py does so with ``connect`` and
``disconnect`` around WebSockets. Tests: tests/middleware/test_composition.py,
tests/middleware/test_connections.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from citius._core import Request, Response, WebSocket
from citius.records import record
from citius.unknown_options import with_known_options
from citius.web.declarations.type_kinds import is_async
from citius.web.realtime.webtransport import WebTransportSession

if TYPE_CHECKING:
    from citius.web.middleware.fields import NamedRoutes

Next: TypeAlias = Callable[[Request], Response]
"""What a ``def`` middleware gets to call what is inside."""

AsyncNext: TypeAlias = Callable[[Request], Awaitable[Response]]
"""What an ``async def`` middleware gets, to be awaited."""

OnError: TypeAlias = Callable[[Request, Exception], Response]
"""What makes a response of an exception in a chain without a coroutine."""

Socket: TypeAlias = WebSocket | WebTransportSession
"""What is opened by a request: a WebSocket, or a WebTransport session."""
Connection: TypeAlias = Request | Socket
"""What connection middleware sees: a request, or a socket that is not accepted yet."""

NextConnection: TypeAlias = Callable[[Connection], Response | None]
"""What a ``def`` connection middleware gets: it returns ``None`` for a WebSocket that was accepted."""

AsyncNextConnection: TypeAlias = Callable[[Connection], Awaitable[Response | None]]
"""What an ``async def`` connection middleware gets, to be awaited."""


class Middleware:
    """Middleware in two halves, either of which may be ``async def``."""

    requests_only: ClassVar[bool] = False
    """Whether ``before`` and ``after`` are not called for the requests that open WebSockets and sessions."""

    gives_session: ClassVar[bool] = False
    """Whether handlers and middleware inside have ``session(request)`` of it."""
    needs_session: bool = False
    """Whether it calls ``session(request)``: the start fails if nothing around it gives one."""

    def __init_subclass__(cls) -> None:
        init = cls.__dict__.get("__init__")
        if inspect.isfunction(init) and cls.__module__.startswith("citius."):
            made: Any = with_known_options(init, cls.__name__)
            cls.__init__ = made

    def before(self, request: Request) -> object:
        """Return a ``Response`` in place of what is inside, or ``None`` to call it."""

    def after(self, request: Request, response: Response) -> object:
        """Return the response of what is inside, changed or replaced.

        Not called with a response of ``before``.
        """
        return response

    def connect(self, socket: Socket) -> object:
        """Return a ``Response`` to refuse a WebSocket before it is accepted, or ``None`` to go on.

        For a class that defines neither this nor ``disconnect`` the request that opens a WebSocket is one as
        any other: ``before`` may refuse it, and ``after`` is called when the WebSocket is over, with the
        response that refused it or one with status 200.
        """

    def disconnect(self, socket: Socket) -> object:
        """Called when the handler of a WebSocket that ``connect`` let pass has ended, whatever it raised."""

    def bind(
        self, method: str, pattern: str | None, handler: Callable[..., object] | None
    ) -> AnyMiddleware | None:
        """Return what this middleware is for one route, ``None`` if it leaves the route alone.

        Called once for each route when the application starts.

        Args:
            method: The route's method; empty for paths and methods without a route, ``WEBSOCKET`` for paths
                of WebSockets and of WebTransport sessions.
            pattern: The route's path with the prefixes of mounts; ``None`` for those.
            handler: What the route calls.
        """
        return self

    def bind_kind(
        self,
        kind: str,
        method: str,
        pattern: str | None,
        handler: Callable[..., object] | None,
    ) -> AnyMiddleware | OnConnections | ByChain | None:
        """``bind`` for a middleware to which it matters how handlers are called.

        Args:
            kind: ``def`` on the event loop, ``blocking`` in a thread, or ``async``.
            method: As for ``bind``.
            pattern: As for ``bind``.
            handler: As for ``bind``.
        """
        return self.bind(method, pattern, handler)

    @property
    def named_routes(self) -> NamedRoutes | None:
        """The routes that its options name: the start fails if one of them does not exist."""
        return None

    def guard_of(self, pattern: str) -> object:
        """Return the security scheme that a route has to satisfy here, if any: it is documented."""

    def limit_of(self, pattern: str, handler: Callable[..., object]) -> str | None:
        """Return how this middleware limits a route, in a few words for ``citius routes``, if it does."""

    def limit_of_kind(self, kind: str, pattern: str, handler: Callable[..., object]) -> str | None:
        """``limit_of`` for a middleware to which it matters how handlers are called."""
        return self.limit_of(pattern, handler)

    @property
    def steps(self) -> tuple[Callable[..., object], ...]:
        """The functions that are called for a request; a coroutine function needs an event loop."""
        return self.before, self.after

    @property
    def is_async(self) -> bool:
        """Whether a step is a coroutine function."""
        return any(map(is_async, self.steps))

    @property
    def socket_steps(self) -> tuple[Callable[..., object], ...]:
        """The functions that are called for a WebSocket; none if this middleware is for requests only."""
        cls = type(self)
        is_ours = (cls.connect, cls.disconnect) != (Middleware.connect, Middleware.disconnect)
        return (self.connect, self.disconnect) if is_ours else ()


AnyMiddleware: TypeAlias = (
    Middleware
    | Callable[[Request, Next], object]
    | Callable[[Request, AsyncNext], Awaitable[object]]
)
"""Whatever ``App.middleware`` takes."""

ConnectionMiddleware: TypeAlias = (
    Callable[[Connection, NextConnection], Response | None]
    | Callable[[Connection, AsyncNextConnection], Awaitable[Response | None]]
)
"""Whatever ``App.connection_middleware`` takes."""


@record(frozen=True, slots=True)
class ByChain:
    """What a middleware is for one route where it matters whether what is inside is a coroutine.

    Not only the handler decides that: other middleware inside and error handlers may be ``async def``.
    """

    function: Callable[[Request, Next], Response]
    coroutine_function: Callable[[Request, AsyncNext], Awaitable[Response]]
    make_chain: Callable[[Next, OnError], Next] | None = None
    """Makes a chain with this around one without a coroutine, in place of ``function``.

    The chain inside returns responses of the request alone and raises nothing; so does what is made.
    """


@record(frozen=True, slots=True)
class OnRequests:
    """A function of ``App.middleware(…, requests_only=True)`` among the middleware of an application."""

    function: Callable[..., object]


@record(frozen=True, slots=True)
class OnConnections:
    """A function of ``App.connection_middleware`` among the middleware of an application."""

    function: ConnectionMiddleware


Declared: TypeAlias = AnyMiddleware | OnRequests | OnConnections
"""What the list of an application's middleware holds."""
