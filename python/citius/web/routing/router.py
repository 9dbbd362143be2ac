"""``Router``: routes and WebSockets that belong together, with what they share.

``App`` is a router; others are included in one, below a prefix. Tests: ``tests/gateway/test_endpoints.py``.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar, overload

from citius.errors import ConfigError
from citius.unknown_options import INSTEAD, caller, statement, with_known_options
from citius.web.binding.signature import kind_of
from citius.web.declarations import checks
from citius.web.middleware.base import Middleware, OnConnections, OnRequests
from citius.web.routing.declared_routes import (
    Included,
    Route,
    RouteOptions,
    SocketRoute,
    carried_handler,
    check_options,
    check_tags,
    declare,
    declare_compiled,
)
from citius.web.routing.request_chain import ErrorHandlers

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Literal, Unpack

    from citius._core import Request
    from citius.http import Client, Timeout
    from citius.http.gateway import HTTPCache, Upstreams
    from citius.http.gateway.forwarding import RequestHook, ResponseHook
    from citius.web.declarations.parameters.sources import Depends
    from citius.web.middleware.base import AnyMiddleware, ConnectionMiddleware, Declared

_P = ParamSpec("_P")
_R = TypeVar("_R")
_ErrorHandlerT = TypeVar("_ErrorHandlerT", bound="Callable[[Request, Any], Any]")
_HandlerT = TypeVar("_HandlerT", bound="Callable[..., Any]")
_MiddlewareT = TypeVar("_MiddlewareT", bound="AnyMiddleware")
_ConnectionT = TypeVar("_ConnectionT", bound="ConnectionMiddleware")

# No middleware was given: a decorator is wanted.
_ABSENT: Final[Any] = object()


def _routing(method: Callable[_P, _R]) -> Callable[_P, _R]:
    """A method that makes a route."""
    annotations = {**method.__annotations__, "form": "FormLimits | None"}
    return with_known_options(method, also=RouteOptions.__annotations__, annotations=annotations)


class Router:
    """Routes that share a prefix, tags and dependencies: ``app.include(router)``.

    Args:
        prefix: The beginning of their paths, such as ``/users``.
        tags: Groups of the documentation that they belong to.
        dependencies: Dependencies of each of them whose values no handler takes.
    """

    @with_known_options
    def __init__(
        self,
        *,
        prefix: str = "",
        tags: Sequence[str] = (),
        dependencies: Sequence[Depends] = (),
    ) -> None:
        if prefix:
            checks.check_prefix(prefix, "the prefix of a router")
        self._prefix = prefix
        check_tags(type(self).__name__, tags)
        self._tags = tuple(tags)
        self._dependencies = checks.as_dependencies("the Router", dependencies)
        self._own_routes: list[Route] = []
        self._own_sockets: list[SocketRoute] = []
        self._included: list[tuple[str, Router]] = []
        self._errors = ErrorHandlers()
        self._middleware: list[Declared] = []
        self._frozen = False

    @overload
    def middleware(
        self, middleware: _MiddlewareT, *, requests_only: bool = False
    ) -> _MiddlewareT: ...

    @overload
    def middleware(
        self, *, requests_only: bool = False
    ) -> Callable[[_MiddlewareT], _MiddlewareT]: ...

    @with_known_options
    def middleware(
        self, middleware: AnyMiddleware = _ABSENT, *, requests_only: bool = False
    ) -> object:
        """Wrap every request: ``def (request, next)``, ``async def (request, next)``, a ``Middleware``.

        ``next(request)`` gives the ``Response`` of what is inside, awaited in an ``async def``, whatever
        failed there. A plain ``def`` cannot look at the response of an ``async def`` handler. For the request
        that opens a WebSocket or a session ``next`` returns when that is over: the response that refused it,
        or one with status 200. The middleware of an application sees paths without a route as well, and
        stands around that of its routers.

        Args:
            middleware: The function or the object; without it, a decorator is returned.
            requests_only: Do not call this function for requests that open WebSockets and sessions.

        Raises:
            ConfigError: Its signature does not fit.
        """
        self._check_open()
        if middleware is _ABSENT:
            return functools.partial(self.middleware, requests_only=requests_only)
        checks.check_middleware(middleware)
        if not requests_only:
            self._middleware.append(middleware)
        elif isinstance(middleware, Middleware):
            raise ConfigError(
                f"app.middleware ({caller()}): requests_only is for functions; say `requests_only = True` in "
                f"the class {type(middleware).__name__}"
            )
        else:
            self._middleware.append(OnRequests(middleware))
        return middleware

    @with_known_options
    def connection_middleware(self, middleware: _ConnectionT) -> _ConnectionT:
        """Wrap every request and every WebSocket: ``def (connection, next)``, or an ``async def`` of these.

        ``connection`` is a ``Request``, or a ``WebSocket`` before it is accepted. For a WebSocket
        ``next(connection)`` returns when its handler has ended: ``None``, or the ``Response`` that refused
        it; what a handler raises after the acceptance is raised here. Returning a ``Response`` without
        calling ``next`` refuses the connection. It stands in the order of all middleware, the first one
        outermost.
        """
        self._check_open()
        checks.check_connection_middleware(middleware)
        self._middleware.append(OnConnections(middleware))
        return middleware

    @statement
    def include(self, router: Router, *, prefix: str = "") -> None:
        """Add the routes of ``router``, below ``prefix`` and the router's own prefix.

        Their own middleware stands inside that of the application.
        """
        self._check_open()
        if prefix:
            checks.check_prefix(prefix, "a prefix of `include`")
        checks.check_included(router, Router, self)
        self._included.append((prefix, router))

    @_routing
    def route(
        self, pattern: str, *, methods: Iterable[str] = ("GET",), **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """Call the decorated function for requests for ``pattern``.

        Args:
            pattern: A path; ``{name}`` is one segment, ``{name:int}`` one that is a number (also
                ``float``, ``uuid``), ``{name:path}`` all the rest.
            methods: ``GET`` brings ``HEAD`` with it, unless ``HEAD`` has a handler of its own.
            options: See :class:`RouteOptions`.
        """
        names = checks.checked_methods(methods, pattern)
        checks.check_pattern(pattern, f"app.{names[0].lower()}" if len(names) == 1 else "app.route")
        if not names:
            raise ConfigError(f"the route {pattern} has no method")
        self._check_open()
        compiled = options.get("compiled")
        is_compiled = compiled is not None and compiled is not False
        check_options(pattern, options, is_compiled=is_compiled)
        made = declare_compiled(pattern, options) if is_compiled else None
        is_made_of_function = compiled is True
        if made is not None and not is_made_of_function:
            self._own_routes += [replace(made, method=name) for name in names]

        def add(handler: _HandlerT) -> _HandlerT:
            self._check_open()
            if made is None:
                route = declare(pattern, handler, options)
            elif is_made_of_function and made.compiled is not None:
                made.compiled.check(handler)
                route = replace(made, handler=handler)
            else:
                return handler
            self._own_routes.extend(replace(route, method=name) for name in names)
            return handler

        return add

    @_routing
    def get(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for GET (and HEAD)."""
        return self.route(pattern, methods=("GET",), **options)

    @_routing
    def post(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for POST."""
        return self.route(pattern, methods=("POST",), **options)

    @_routing
    def put(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for PUT."""
        return self.route(pattern, methods=("PUT",), **options)

    @_routing
    def delete(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for DELETE."""
        return self.route(pattern, methods=("DELETE",), **options)

    @_routing
    def patch(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for PATCH."""
        return self.route(pattern, methods=("PATCH",), **options)

    @_routing
    def options(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for OPTIONS."""
        return self.route(pattern, methods=("OPTIONS",), **options)

    @_routing
    def head(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for HEAD, where GET's handler would do too much."""
        return self.route(pattern, methods=("HEAD",), **options)

    @with_known_options
    def websocket(
        self, pattern: str, *, serial: bool = False, dependencies: Sequence[Depends] = ()
    ) -> Callable[[_HandlerT], _HandlerT]:
        """Talk to clients that ask for a WebSocket at ``pattern`` with the decorated function.

        It gets the :class:`WebSocket`, and parameters as the handler of a route does, without those of a
        body. A ``def`` gets a :class:`SerialWebSocket` and runs in a thread of the pool, under gevent in a
        greenlet. Until it sends, receives or accepts, it may return a ``Response`` or raise an ``HTTPError``
        instead. Connection middleware is called for it, other middleware only if it has ``connect``.

        Args:
            pattern: A path, as for ``route``.
            serial: Call a ``def`` in a greenlet instead of a thread, where it may wait while its thread
                serves others (see ``citius.serial``).
            dependencies: Dependencies whose values the handler does not take.
        """
        checks.check_pattern(pattern, "app.websocket")
        depends = checks.as_dependencies(f"the WebSocket {pattern}", dependencies)

        def add(handler: _HandlerT) -> _HandlerT:
            self._check_open()
            called: Callable[..., Any] = handler
            if serial:
                called = carried_handler(f"the WebSocket {pattern}", handler)
            is_async = kind_of(called, blocking=False) == "async"
            kind = "async" if is_async else "blocking"
            self._own_sockets.append(SocketRoute(pattern, called, kind, depends))
            return handler

        return add

    @with_known_options
    def webtransport(
        self, pattern: str, *, dependencies: Sequence[Depends] = ()
    ) -> Callable[[_HandlerT], _HandlerT]:
        """Talk to clients that ask for a WebTransport session at ``pattern`` with an ``async def``.

        It gets the :class:`WebTransportSession`, and all else as a WebSocket's; until it uses the session, it
        may refuse. The values of ``dependencies`` are not taken. HTTP/3 must be served (``--http 1,2,3``).
        """
        checks.check_pattern(pattern, "app.webtransport")
        depends = checks.as_dependencies(f"WebTransport {pattern}", dependencies)

        def add(handler: _HandlerT) -> _HandlerT:
            self._check_open()
            if kind_of(handler, blocking=False) != "async":
                where = f"WebTransport {pattern}: {checks.describe(handler)}"
                raise ConfigError(f"{where} is a `def`; make it `async def`")
            self._own_sockets.append(
                SocketRoute(pattern, handler, "async", depends, "webtransport")
            )
            return handler

        return add

    @with_known_options
    def run(
        self,
        pattern: str,
        *,
        owner: Callable[..., object] | None = None,
        lasts_s: float = 3600.0,
        grace_s: float | None = 60.0,
        keep_s: float = 300.0,
        history: int = 10_000,
        history_bytes_max: int = 4 * 1024 * 1024,
        runs_max: int = 1000,
        owner_runs_max: int = 16,
        heartbeat_s: float | None = 15.0,
        dependencies: Sequence[Depends] = (),
        name: str | None = None,
        summary: str | None = None,
        description: str | None = None,
        tags: Sequence[str] = (),
        deprecated: bool = False,
        include_in_schema: bool = True,
    ) -> Callable[[_HandlerT], _HandlerT]:
        """Let clients begin runs of the decorated generator, which go on when their connection breaks.

        ``POST pattern`` begins a run and responds with its events (``Accept: text/event-stream``), or with
        202 and where it is; its parameters are those of the generator. ``GET pattern/RUN`` has the events
        from ``Last-Event-ID`` on, as server-sent events or as messages of a WebSocket, or with ``Accept:
        application/json`` the state. ``DELETE pattern/RUN`` cancels. Any worker, and any node of a cluster
        with Redis, serves these. The last event is of the type ``end`` and says how the run has ended.

        Args:
            pattern: A path, as for ``route``.
            owner: A dependency whose value says who calls: only the one who has begun a run reads and cancels
                it. Without it that is any client that knows the run's identifier and passes ``dependencies``.
            lasts_s: How long a run may take; then it is cancelled.
            grace_s: How long it goes on without a reader; ``None`` for as long as it takes.
            keep_s: How long it can be read when it is over.
            history: Events of a run that are kept.
            history_bytes_max: Bytes of them.
            runs_max: Runs of one worker at a time; a further one gets 503.
            owner_runs_max: Runs of one owner at a time, in all workers; a further one gets 429.
            heartbeat_s: As for ``EventStream``.
            dependencies: Dependencies of all these requests, whose values the generator does not take.
            name: As for ``route``; ``url_for`` has ``NAME.read`` and ``NAME.cancel`` too.
            summary: As for ``route``.
            description: As for ``route``.
            tags: As for ``route``.
            deprecated: As for ``route``.
            include_in_schema: As for ``route``.
        """
        checks.check_run_pattern(pattern)
        checks.check_pattern(pattern, "app.run")
        self._check_open()
        from citius.web.realtime.runs.run_tasks import RunLimits
        from citius.web.realtime.runs.runs import Runs

        limits = RunLimits(
            lasts_s, grace_s, keep_s, history, history_bytes_max, runs_max, owner_runs_max
        )
        options: dict[str, Any] = {
            "dependencies": dependencies, "name": name, "summary": summary,
            "description": description, "tags": tags, "deprecated": deprecated,
            "include_in_schema": include_in_schema,
        }  # fmt: skip

        def add(handler: _HandlerT) -> _HandlerT:
            self._check_open()
            made = Runs(
                pattern, handler, limits, owner=owner, heartbeat_s=heartbeat_s, options=options
            )
            self._own_routes += made.routes()
            self._own_sockets += made.sockets()
            return handler

        return add

    @with_known_options
    def uploads(
        self,
        pattern: str,
        *,
        directory: str | os.PathLike[str],
        owner: Callable[..., object] | None = None,
        size_max: int = 1024 * 1024 * 1024,
        age_s: float = 24 * 3600.0,
        owner_uploads_max: int = 100,
        free_bytes_min: int = 64 * 1024 * 1024,
        dependencies: Sequence[Depends] = (),
        name: str | None = None,
        summary: str | None = None,
        description: str | None = None,
        tags: Sequence[str] = (),
        include_in_schema: bool = True,
    ) -> Callable[[_HandlerT], _HandlerT]:
        """Let clients upload files in several requests, and go on where a connection broke.

        The protocols are tus 1.0 and draft-ietf-httpbis-resumable-upload; a plain ``POST`` works, too. The
        decorated ``async def`` is called with an ``Upload`` when all bytes are there, and makes the response
        to the request that has brought the last ones. The file is removed when it returns, unless it has
        been moved.

        Args:
            pattern: A path, as for ``route``.
            directory: Where uploads are until they are complete; all workers, and machines, that serve them
                share it. It is made if it is missing.
            owner: A dependency whose value says who calls: only the one who has begun an upload goes on with
                it. Without it that is any client that knows where it is and passes ``dependencies``.
            size_max: Bytes that an upload may have; 413 for more.
            age_s: How long an upload may take; then it is removed.
            owner_uploads_max: Uploads of one owner, or of all without ``owner``, that are not complete; a
                further one gets 429.
            free_bytes_min: Bytes of the disk that uploads leave free; 507 for one that would take them.
            dependencies: Dependencies of all these requests, whose values the function does not take.
            name: As for ``route``.
            summary: As for ``route``.
            description: As for ``route``.
            tags: As for ``route``.
            include_in_schema: As for ``route``.
        """
        checks.check_pattern(pattern, "app.uploads")
        self._check_open()
        from pathlib import Path

        from citius.web.uploads.resumable import Uploads
        from citius.web.uploads.store import UploadDirectory

        options: dict[str, Any] = {
            "dependencies": dependencies, "name": name, "summary": summary,
            "description": description, "tags": tags, "include_in_schema": include_in_schema,
        }  # fmt: skip

        def add(handler: _HandlerT) -> _HandlerT:
            self._check_open()
            store = UploadDirectory(Path(directory), age_s, owner_uploads_max, free_bytes_min)
            made = Uploads(
                pattern,
                handler,
                store,
                owner=owner,
                size_max=size_max,
                age_s=age_s,
                options=options,
            )
            self._own_routes += made.routes()
            return handler

        return add

    @statement
    def forward(
        self,
        pattern: str,
        to: str | Client | Upstreams | Iterable[str],
        *,
        path: str | None = None,
        methods: Iterable[str] = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"),
        websockets: bool = True,
        timeout: Timeout | float | None = None,
        headers: Mapping[str, str] | None = None,
        host: Literal["target", "client"] = "target",
        forwarded: Literal["x-forwarded", "forwarded", "both"] | None = "x-forwarded",
        via: str = "citius",
        on_request: RequestHook | None = None,
        on_response: ResponseHook | None = None,
        requests_max: int | None = None,
        body_bytes_max: int | None = None,
        retry: bool = True,
        cache: HTTPCache | None = None,
        dependencies: Sequence[Depends] = (),
        name: str | None = None,
        tags: Sequence[str] = (),
    ) -> None:
        """Pass requests for ``pattern`` on to another server, and its responses back.

        Content passes as it comes, both ways, without Python. Dependencies, middleware and error handlers
        hold for these requests as for others.

        Args:
            pattern: A path, as for ``route``, such as ``/v1/{rest:path}``.
            to: The URL of the server, or of several; a ``citius.http.Client`` with ``base_url``;
                ``Upstreams``. A path in the URL is as ``path`` says.
            path: The path to ask for, with the parameters of ``pattern``: ``/api/{rest}``. That of the
                request without it. The query is passed on.
            methods: Methods that are passed on.
            websockets: Pass WebSockets on.
            timeout: In place of that of the client.
            headers: Fields to set.
            host: ``"client"``: the server gets the field ``Host`` of the client's request.
            forwarded: What says where a request comes from: ``X-Forwarded-For``, ``-Proto`` and ``-Host``,
                ``Forwarded``, both or nothing. What a client says there is replaced.
            via: What this server is called in ``Via``.
            on_request: Called with the ``ForwardedRequest``; a ``Response`` that it returns is the response.
            on_response: Called with the request and the ``Response`` before its content, whose status and
                headers may be changed.
            requests_max: Requests of the declaration that are passed on at a time; a further one gets 503.
            body_bytes_max: As for ``route``.
            retry: Try a second server, if there are several, where nothing was sent to the first, or the
                request is idempotent and has no content.
            cache: Where responses are kept and sent again (RFC 9111); not together with hooks.
            dependencies: Dependencies whose values are not used.
            name: As for ``route``.
            tags: As for ``route``.

        Raises:
            ConfigError: An option cannot work.
        """
        checks.check_pattern(pattern, "app.forward")
        methods = checks.checked_methods(methods, pattern)
        self._check_open()
        from citius.http.gateway.declared import Declaration

        made = Declaration(
            pattern, to, path=path, methods=methods, websockets=websockets, timeout=timeout, headers=headers,
            host=host, forwarded=forwarded, via=via, on_request=on_request, on_response=on_response,
            requests_max=requests_max, body_bytes_max=body_bytes_max, retry=retry, cache=cache,
            options={
                "dependencies": dependencies, "name": name, "tags": tags, "include_in_schema": False,
            },
        )  # fmt: skip
        self._own_routes += made.routes()

    @with_known_options
    def exception_handler(
        self, what: type[BaseException] | int
    ) -> Callable[[_ErrorHandlerT], _ErrorHandlerT]:
        """Respond to exceptions of a class, or an error status, with the decorated ``(request, exception)``.

        The handlers of the innermost router come first, and of these that of the closest class. A status
        covers ``HTTPError`` with that status and 500 unhandled exceptions; in an application 404 and 405 for
        paths and methods without a route too.
        """
        self._check_open()
        checks.check_error_key(what)

        def add(handler: _ErrorHandlerT) -> _ErrorHandlerT:
            checks.check_error_handler(handler)
            self._errors.add(what, handler)
            return handler

        return add

    @property
    def declared_routes(self) -> list[Route]:
        """Its routes and those that it includes, with prefixes, tags and dependencies."""
        return [
            one.give_route(route)
            for one in self.walk_included()
            for route in one.router._own_routes
        ]

    @property
    def declared_sockets(self) -> list[SocketRoute]:
        """Its paths of WebSockets and those of routers that it includes."""
        return [
            one.give_socket(socket)
            for one in self.walk_included()
            for socket in one.router._own_sockets
        ]

    def walk_included(self) -> Iterator[Included]:
        """This router and those below it, with what their routes share."""
        own = (*self._tags,), (*self._dependencies,)
        return self._walk(Included(self, self._prefix, *own, errors=(), middleware=()))

    def _walk(self, own: Included) -> Iterator[Included]:
        yield own
        for prefix, router in self._included:
            inner = Included(
                router,
                own.prefix + prefix + router._prefix,
                (*own.tags, *router._tags),
                (*own.dependencies, *router._dependencies),
                (router._errors, *own.errors),
                (*own.middleware, *router._middleware),
            )
            yield from router._walk(inner)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            hint = INSTEAD.get(name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
                + (f"; {hint}" if hint else "")
            )

    def _check_open(self) -> None:
        if self._frozen:
            raise ConfigError(
                "the application is being served and can no longer change; add routes, middleware "
                "and handlers when its module is imported"
            )

    def close(self) -> None:
        """Refuse to be changed from now on."""
        for one in self.walk_included():
            one.router._frozen = True
