"""``App``: routes, middleware, error handlers and hooks, until ``freeze`` makes a gateway of them.

Everything is decided at ``freeze``, once per process (gateway.py). Without middleware and without error
handlers of a mounted application a route costs no Python frame but its handler's own.

Middleware runs in the order it was added, the first one outermost, around the answers of error handlers
too; it also sees requests that no route matches. What it gets back from ``next`` is a ``Response``.

It is long because it is one thing, what applications are written with, and half of it is documentation.
"""

from __future__ import annotations

import os
from dataclasses import replace
from threading import RLock
from types import SimpleNamespace
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Literal,
    NoReturn,
    ParamSpec,
    TypeAlias,
    TypeVar,
    cast,
    overload,
)

from citius._core import Native, Room
from citius.errors import ConfigError
from citius.process.processors import processors
from citius.unknown_options import caller, check_decorated_name, statement, with_known_options
from citius.web.application import lifecycle
from citius.web.application.gateway import endpoints_of, make_gateway
from citius.web.binding.depends.dependencies import AppDependencies
from citius.web.declarations import checks
from citius.web.openapi import OpenAPI
from citius.web.routing.mounted import Border, Member
from citius.web.routing.request_chain import ErrorHandlers, log_unexpected
from citius.web.routing.router import Router
from citius.web.routing.rpc.procedures import Procedure, procedure
from citius.web.routing.static import Mount

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager
    from weakref import ref

    from citius._core import Request
    from citius.cluster import Cluster
    from citius.mcp.authorization import Authorization
    from citius.mcp.server import MCPServer
    from citius.settings.config import Config
    from citius.web.declarations.parameters.sources import Depends
    from citius.web.execution.executors import NamedExecutor, Submits
    from citius.web.execution.thread_pool import BlockingPool
    from citius.web.interop.asgi import ASGIAdapter
    from citius.web.interop.scopes import ASGIApplication, Receive, Scope, Send
    from citius.web.interop.wsgi import WSGIApplication
    from citius.web.middleware.base import Declared as Middleware
    from citius.web.realtime.broadcast import Broadcast
    from citius.web.realtime.rooms import GapRoom, HistoryRoom
    from citius.web.realtime.runs.run_keeper import RunKeeper
    from citius.web.routing.declared_routes import Route
    from citius.web.routing.endpoint import Endpoint
    from citius.web.routing.rpc.connect import Connect
    from citius.web.routing.rpc.session_calls import SessionCalls
    from citius.web.routing.urls import Urls

    SharedRoom: TypeAlias = Room | HistoryRoom | Broadcast | GapRoom

    Hook = Callable[[], Any]

_HandlerT = TypeVar("_HandlerT", bound="Callable[..., Any]")
_HookT = TypeVar("_HookT", bound="Hook")
_P = ParamSpec("_P")
_CheckT = TypeVar("_CheckT", bound="Callable[[], object]")
_ROOM_DEFAULTS: Mapping[str, object] = {"history": 0, "slow": "close", "on_gap": None}
_BROADCAST_DEFAULTS: Mapping[str, object] = {
    "history": 0, "heartbeat_s": 15.0, "queue_bytes_max": 256 * 1024, "slow": "close",
}  # fmt: skip


class App(Router):
    """An application: add handlers with its decorators, then ``citius serve module:app``.

    Args:
        lifespan: An asynchronous context manager around the time the application serves; called
            with the application. A mapping that it yields is in ``request.state`` of each request.
        tags: Groups of the documentation that all routes belong to.
        dependencies: Dependencies of all that it serves, whose values no handler takes: of routes, static
            mounts, WebSockets, procedures, and of what is mounted in it.
        openapi: What the documentation says of the application, and where it is.
        redirect_slashes: Redirect a path that has no route to the one with a slash at its end, or without
            its own, if that has one (308).
        cluster: The engines by which rooms and broadcasts are one on many machines; it starts and stops with
            the application.
    """

    @with_known_options
    def __init__(
        self,
        *,
        lifespan: Callable[[App], AbstractAsyncContextManager[object]] | None = None,
        tags: Sequence[str] = (),
        dependencies: Sequence[Depends] = (),
        openapi: OpenAPI | None = None,
        redirect_slashes: bool = False,
        cluster: Cluster | None = None,
    ) -> None:
        super().__init__(tags=tags, dependencies=checks.as_dependencies("App", dependencies))
        if lifespan is not None:
            checks.check_lifespan(lifespan)
        self.state = SimpleNamespace()
        """A place for what handlers share: pools, clients, models."""
        self.dependency_overrides: dict[Callable[..., Any], Callable[..., Any]] = {}
        """Functions to call in place of dependencies, for tests: set before ``Client(app)``."""
        self._of_app = AppDependencies()
        self._openapi = openapi or OpenAPI()
        self._urls: Urls | None = None
        self._rooms: dict[str, Room | HistoryRoom] = {}
        self._gap_rooms: dict[str, GapRoom] = {}
        """Of those that have an ``on_gap``: what is shared in their place."""
        self._broadcasts: dict[str, Broadcast] = {}
        self._made_with: dict[object, Mapping[str, object]] = {}
        """The options of each room and broadcast."""
        self._executors: dict[str, NamedExecutor] = {}
        # Several threads make rooms. To share one may log, and a handler of logs may make another.
        self._naming = RLock()
        self._mounts: list[tuple[str, App]] = []
        self._statics: list[Mount] = []
        self._procedures: list[Procedure] = []
        self._mcp: list[MCPServer] = []
        self._connects: list[Connect] = []
        self._session_calls: list[SessionCalls] = []
        self._run_keeper: RunKeeper | None = None
        self.cluster = cluster
        """What it was made with."""
        self._hooks = lifecycle.Hooks(lifespan, app=self)
        self._end: Callable[[], Awaitable[None]] | None = None
        """What stops it, between start and stop."""
        self.on_broken: Callable[[], bool] = bool
        """Called when a task group of a lifespan has ended before that; the server sets it."""
        self._readiness: list[Callable[[], object]] = []
        self._on_shared: Callable[[str, SharedRoom], object] | None = None
        self._redirect_slashes = redirect_slashes
        self._asgi: ref[ASGIAdapter] | None = None
        self._lifespans: list[lifecycle.Hooks] = []
        # What lifespans have yielded, in `request.state` of each request; the extension reads it.
        self._lifespan_state: dict[str, object] | None = None
        self._has_asgi_middleware = False

    # --- declaring ------------------------------------------------------------------------------

    @overload
    def room(
        self,
        name: str,
        *,
        history: Literal[0] = 0,
        slow: Literal["close", "drop"] = "close",
        on_gap: Callable[[int], str | bytes | None] | None = None,
    ) -> Room: ...
    @overload
    def room(
        self, name: str, *, history: int, slow: Literal["close", "drop"] = "close"
    ) -> HistoryRoom: ...
    @with_known_options
    def room(
        self,
        name: str,
        *,
        history: int = 0,
        slow: Literal["close", "drop"] = "close",
        on_gap: Callable[[int], str | bytes | None] | None = None,
    ) -> Room | HistoryRoom:
        r"""The room of this name, made when it is first asked for.

        Args:
            name: Rooms of one name are one room, in all workers of a server, or of a cluster. The first
                call makes it; a later call leaves the options out, or gives the same ones.
            history: Messages kept for members that come back; messages get identifiers then.
            slow: What becomes of a member that does not read what it is sent: it is closed with 1013, or
                misses messages.
            on_gap: Returns what the members in this process are sent where messages of other workers are
                lost, given how many they are (0: that is not known). A room with a history needs none: it
                sends ``gap\n{"missed": NUMBER}``.

        Raises:
            ConfigError: There is both a history and an ``on_gap``, or the room was made with other options.
        """
        if history and on_gap is not None:
            raise ConfigError(
                f"room {name!r}: a room with a history says itself where messages are missing; "
                "leave on_gap= out"
            )
        if on_gap is not None:
            checks.check_callback(on_gap, f"app.room({name!r}, on_gap=…)", "count")
        room = self._rooms.get(name)
        if room is not None and not history and on_gap is None and slow == "close":
            return room
        options = {"history": history, "slow": slow, "on_gap": on_gap}
        with self._naming:
            room = self._rooms.get(name)
            if room is not None:
                made = self._made_with[room]
                checks.check_as_made(f"app.room({name!r})", made, options, _ROOM_DEFAULTS)
                return room
            if history:
                from citius.web.realtime.rooms import HistoryRoom

                room = HistoryRoom(history, slow=slow)
            else:
                room = Room(slow=slow)
                if on_gap is not None:
                    from citius.web.realtime.rooms import GapRoom

                    self._gap_rooms[name] = GapRoom(room, on_gap)
            if self._on_shared is not None:
                self._on_shared(f":{name}", self._gap_rooms.get(name, room))
            self._made_with[room] = options
            self._rooms[name] = room
        return room

    @with_known_options
    def broadcast(
        self,
        name: str,
        *,
        history: int = 0,
        heartbeat_s: float | None = 15.0,
        queue_bytes_max: int = 256 * 1024,
        slow: Literal["close", "drop"] = "close",
    ) -> Broadcast:
        """The broadcast of this name, made when it is first asked for.

        Args:
            name: Broadcasts of one name are one, in all workers of a server. The first call makes it; a later
                call leaves the options out, or gives the same ones.
            history: As for ``Broadcast``.
            heartbeat_s: As for ``EventStream``.
            queue_bytes_max: As for ``EventStream``.
            slow: As for ``EventStream``.

        Raises:
            ConfigError: The broadcast was made with other options.
        """
        options = {
            "history": history, "heartbeat_s": heartbeat_s, "queue_bytes_max": queue_bytes_max,
            "slow": slow,
        }  # fmt: skip
        found = self._broadcasts.get(name)
        if found is not None and options == _BROADCAST_DEFAULTS:
            return found
        from citius.web.realtime.broadcast import Broadcast

        with self._naming:
            found = self._broadcasts.get(name)
            if found is not None:
                made = self._made_with[found]
                checks.check_as_made(f"app.broadcast({name!r})", made, options, _BROADCAST_DEFAULTS)
                return found
            found = Broadcast(
                history=history, heartbeat_s=heartbeat_s, queue_bytes_max=queue_bytes_max, slow=slow
            )
            if self._on_shared is not None:
                self._on_shared(f"!{name}", found)
            self._made_with[found] = options
            self._broadcasts[name] = found
        return found

    @statement
    def executor(
        self,
        name: str,
        executor: Submits | Callable[[], Submits] | None = None,
        *,
        threads: int | None = None,
        processes: int | None = None,
        interpreters: int | None = None,
        calls_max: int = 64,
        deadline_s: float = 60.0,
    ) -> None:
        """Add an executor for routes with ``executor=name``.

        Args:
            name: What routes call it.
            executor: An object with ``submit`` as those of ``concurrent.futures`` have, which is left as it
                is when the application stops; or a function or class that makes one when it starts.
            threads: So many threads.
            processes: So many processes.
            interpreters: So many sub-interpreters in threads (CPython 3.14). Modules of their bodies import
                nothing that refuses sub-interpreters; of Citius that is all but ``Progress``.
            calls_max: Calls that are not done, running ones included; a further one gets 503.
            deadline_s: How long a call may take, its wait included; then it gets 503.

        Raises:
            ConfigError: There is one of this name, or it is not said what it is.
        """
        self._check_open()
        from citius.web.execution.executors import NamedExecutor, made_by

        if name in self._executors:
            raise ConfigError(f"there are two executors {name!r}")
        make, is_ours = made_by(name, executor, threads, processes, interpreters)
        self._executors[name] = NamedExecutor(name, make, calls_max, deadline_s, is_ours)

    @statement
    def mount(self, prefix: str, app: App | ASGIApplication) -> None:
        """Put the routes of ``app`` under ``prefix``, with its middleware, error handlers and hooks.

        The route ``/`` of ``app`` becomes ``prefix`` itself. An ASGI application gets all requests and
        WebSockets there, and its lifespan; at ``"/"`` it gets those that no route is for.
        """
        self._check_open()
        if isinstance(app, App):
            checks.check_prefix(prefix, "the prefix of a mount")
            if app is self or any(one.app is self for one in app.walk()):
                raise ConfigError(f"mounting at {prefix} would make the application contain itself")
            self._mounts.append((prefix, app))
            return
        checks.check_asgi(app, prefix)
        from citius.web.interop.mounts import ASGIMount

        mount = ASGIMount(checks.prefix_of_mount(prefix), app)
        self._own_routes += mount.routes()
        self._own_sockets += mount.sockets()
        self._lifespans.append(mount.hooks())

    @statement
    def mount_rpc(
        self,
        *services: ASGIApplication,
        dependencies: Sequence[Depends] = (),
        health: bool = True,
        reflection: bool = False,
    ) -> None:
        """Serve services of connectrpc: Connect, gRPC and gRPC-Web, at the paths that their clients ask for.

        They have the middleware and the dependencies of the application, and its start and stop.

        Args:
            services: ASGI applications that ``protoc-gen-connectrpc`` has made.
            dependencies: Dependencies of all their calls: who calls, for instance.
            health: Serve ``grpc.health.v1.Health``, without ``dependencies``, for probes.
            reflection: Serve ``grpc.reflection``, with ``dependencies``, for grpcurl and the like.

        Raises:
            ConfigError: Something is no service of connectrpc.
        """
        self._check_open()
        if not services:
            raise ConfigError("app.mount_rpc: expected a service")
        from citius.web.interop.connectrpc.mounts import rpc_routes

        routes, hooks, found = rpc_routes(services, dependencies)
        if health or reflection:
            from citius.web.interop.connectrpc.standard_services import tools

            for name, made in tools(found, health=health, reflection=reflection):
                depends = () if name.startswith("grpc.health.") else dependencies
                more, of_tool, _ = rpc_routes([made], depends)
                routes += more
                hooks += of_tool
        self._own_routes += routes
        self._lifespans += hooks

    @statement
    def mount_wsgi(self, prefix: str, app: WSGIApplication) -> None:
        """Call a WSGI application for all requests under ``prefix``, in threads.

        At ``"/"`` it gets the requests that no route is for.
        """
        self._check_open()
        checks.check_wsgi(app, prefix)
        from citius.web.interop.wsgi import wsgi_routes

        self._own_routes += wsgi_routes(checks.prefix_of_mount(prefix), app)

    @statement
    def static(
        self,
        prefix: str,
        directory: str | os.PathLike[str],
        *,
        index: str | None = "index.html",
        cache_control: str | None = None,
        dotfiles: bool = False,
        symlinks: bool = False,
        precompressed: bool = True,
        optional: bool = False,
        fallback: str | None = None,
        middleware: bool = True,
    ) -> None:
        """Serve the files of ``directory`` below ``prefix``.

        Without middleware and dependencies no Python code is called. ``"/"`` serves what is there, before the
        routes and without middleware, which ``middleware=False`` has to say where there is any, and leaves
        the rest to the routes.

        Args:
            prefix: The path they are below.
            directory: Opened when the server starts.
            index: The file that a directory is answered with; ``None`` for 404.
            cache_control: ``Cache-Control`` of the answers.
            dotfiles: Serve names that begin with a dot.
            symlinks: Follow symbolic links that stay inside the directory.
            precompressed: Send ``name.br``, ``name.zst`` or ``name.gz`` for ``name`` to clients that
                accept it.
            optional: Leave them out if the directory is missing, instead of ending the start.
            fallback: The file below ``directory`` that ``GET`` and ``HEAD`` get, with 200, where there is no
                file and no route and ``Accept`` names ``text/html``: the page of a single-page application.
            middleware: Let middleware see them, if there is any.
        """
        self._check_open()
        self._statics.append(
            Mount(
                prefix="" if prefix == "/" else prefix,
                directory=os.fspath(directory),
                index=index,
                cache_control=cache_control,
                dotfiles=dotfiles,
                symlinks=symlinks,
                precompressed=precompressed,
                optional=optional,
                fallback=fallback,
                middleware=middleware,
                is_root=prefix == "/",
                where=caller(),
            )
        )

    @overload
    def rpc(self, name: _HandlerT, /) -> _HandlerT: ...
    @overload
    def rpc(
        self,
        name: str | None = None,
        /,
        *,
        blocking: bool = False,
        serial: bool = False,
        deadline_s: float | None = None,
        dependencies: Sequence[Depends] = (),
    ) -> Callable[[_HandlerT], _HandlerT]: ...
    @with_known_options
    def rpc(
        self,
        name: Any = None,
        /,
        *,
        blocking: bool = False,
        serial: bool = False,
        deadline_s: float | None = None,
        dependencies: Sequence[Depends] = (),
    ) -> Any:
        """Let other services call the decorated function, at the address of ``--rpc``.

        ``@app.rpc``, ``@app.rpc("other.name")``, alone or on top of a route's decorator. Parameters are
        checked against their annotations, the result is encoded as MessagePack or JSON, and ``RpcError``
        is how to say no. Calls pass no middleware.

        Args:
            name: What it is called by; its own name without one.
            blocking: Call the function (a ``def``) in a thread, because it waits for something.
            serial: Call it in a greenlet, where it may wait while its thread serves others (see
                ``citius.serial``).
            deadline_s: How long a call may take; ``--rpc-call-ms`` without it.
            dependencies: Dependencies whose values the function does not take.
        """
        self._check_open()

        check_decorated_name("app.rpc", name)

        def declare(handler: _HandlerT) -> _HandlerT:
            given = name if isinstance(name, str) else None
            self._procedures.append(
                procedure(
                    handler,
                    given,
                    blocking=blocking,
                    serial=serial,
                    deadline_s=deadline_s,
                    dependencies=dependencies,
                )
            )
            return handler

        return declare(name) if callable(name) else declare

    @statement
    def connect(
        self,
        prefix: str = "",
        *,
        service: str = "citius.Procedures",
        dependencies: Sequence[Depends] = (),
    ) -> None:
        """Let clients of Connect call all procedures of ``rpc`` on the web port, with JSON.

        ``POST prefix/SERVICE/METHOD``: the procedure ``users.get`` is the method ``get`` of the service
        ``users``. A procedure that is a generator is a stream. Calls pass the middleware of the application.
        ``citius proto`` writes a ``.proto`` of them.

        Args:
            prefix: The path they are below.
            service: The service of procedures without a dot in their name.
            dependencies: Dependencies of all calls, which see the request: who calls, for instance.
        """
        self._check_open()
        if prefix:
            checks.check_prefix(prefix, "the prefix of app.connect")
        from citius.web.routing.rpc.connect import made_connect

        self._connects.append(made_connect(prefix, service, dependencies, self._connects))

    @statement
    def webtransport_rpc(
        self, pattern: str, *, quic: bool = False, dependencies: Sequence[Depends] = ()
    ) -> None:
        """Let clients call all procedures of ``rpc`` on streams of WebTransport sessions.

        A bidirectional stream is one call, a unidirectional one a notification; a client that stops reading
        cancels its call. HTTP/3 must be served (``--http 1,2,3``).

        Args:
            pattern: A path, as for ``webtransport``.
            quic: Connections of QUIC with the ALPN ``citius-rpc``, without HTTP/3, are sessions at this path
                too. One path of an application can be theirs; it has no parameters.
            dependencies: Dependencies of the session, which see its request: who calls, for instance.

        Raises:
            ConfigError: ``quic`` with a path that has parameters.
        """
        from citius.web.routing.rpc.session_calls import SessionCalls

        if quic and "{" in pattern:
            raise ConfigError(
                f"app.webtransport_rpc({pattern!r}, quic=True): a connection of QUIC names no path, so that "
                "this one cannot have parameters"
            )
        calls = SessionCalls(pattern, is_quic=quic)
        self.webtransport(pattern, dependencies=dependencies)(calls.handler)
        self._session_calls.append(calls)

    @with_known_options
    def mcp(
        self,
        path: str,
        *,
        name: str | None = None,
        version: str | None = None,
        title: str | None = None,
        instructions: str | None = None,
        origins: Sequence[str] = (),
        hosts: Sequence[str] = (),
        dependencies: Sequence[Depends] = (),
        authorization: Authorization | None = None,
        secret: str | bytes | None = None,
        session_s: int = 24 * 3600,
        answer_s: float = 300.0,
        resume_s: float = 300.0,
        cache_s: int = 0,
    ) -> MCPServer:
        """Serve the Model Context Protocol at ``path``; returns what has the decorators for tools.

        Args:
            path: Where clients find it, such as ``/mcp``.
            name: What it is called; the documentation's title without it.
            version: The version of the application; the documentation's without it.
            title: What people see.
            instructions: What models should know of it.
            origins: Origins of web pages that may call it, such as ``https://app.example.com``; without any
                those of this machine. ``"*"`` lets all.
            hosts: Names that it is called by, if others are to be refused.
            dependencies: Dependencies of all its requests whose values no function takes.
            authorization: Who may call it, and where clients get tokens.
            secret: What signs sessions and states; needed with several machines. The workers of one machine
                share one without it.
            session_s: How long a session of versions before 2026-07-28 may last.
            answer_s: How long a call waits for an answer of its client.
            resume_s: How long a call goes on without its client, and its messages are kept for a client that
                comes back (``Last-Event-ID``), in versions with sessions; 0: clients cannot come back.
            cache_s: How long clients may keep lists.
        """
        self._check_open()
        from citius.mcp.server import MCPServer

        server = MCPServer(
            self, path, name=name or self._openapi.title, version=version or self._openapi.version,
            title=title, instructions=instructions, origins=origins, hosts=hosts,
            dependencies=dependencies, authorization=authorization, secret=secret,
            session_s=session_s, answer_s=answer_s, resume_s=resume_s, cache_s=cache_s,
        )  # fmt: skip
        self._own_routes += server.routes
        self._mcp.append(server)
        # The workers' links are those of broadcasts; its name is none that an application gives.
        self._broadcasts[f"\0mcp {path}"] = cast("Broadcast", server.bus)
        self._broadcasts[f"\0mcp news {path}"] = server.news
        return server

    @statement
    def add_middleware(
        self,
        middleware: Callable[Concatenate[ASGIApplication, _P], ASGIApplication],
        *args: _P.args,
        **options: _P.kwargs,
    ) -> None:
        """Wrap every request in ASGI middleware: ``app.add_middleware(GZipMiddleware, minimum_size=500)``.

        It stands in the order of all middleware, the first one outermost. For a WebSocket it is called once:
        it may refuse it and change the scope; the messages do not pass it.

        Args:
            middleware: Called with an ASGI application, ``args`` and ``options``; makes another.
            args: Further arguments of it.
            options: Its keyword arguments.
        """
        self._check_open()
        from citius.web.interop.middleware import native_middleware

        self._middleware.append(native_middleware(middleware, args, options))
        self._has_asgi_middleware = True

    @with_known_options
    def on_startup(self, hook: _HookT) -> _HookT:
        """Call ``hook`` before the server listens; an exception from it ends the start."""
        self._check_open()
        checks.check_hook(hook, "a start-up hook")
        self._hooks.startup.append(hook)
        return hook

    @with_known_options
    def on_shutdown(self, hook: _HookT) -> _HookT:
        """Call ``hook`` when the last request is done; later ones first."""
        self._check_open()
        checks.check_hook(hook, "a shutdown hook")
        self._hooks.shutdown.append(hook)
        return hook

    @with_known_options
    def readiness(self, check: _CheckT) -> _CheckT:
        """Have ``check`` called every few seconds; the server is ready while it passes.

        A check fails by raising or by returning ``False``. One that is not ``async`` runs in a thread.
        """
        self._check_open()
        checks.check_hook(check, "a readiness check")
        self._readiness.append(check)
        return check

    @property
    def readiness_checks(self) -> list[Callable[[], object]]:
        """Those of this application and of all that are mounted in it, and one for each executor."""
        checks = [check for app in self._apps() for check in app._readiness]
        return [*checks, *(executor.executor_ready for executor in self._all_executors())]

    @with_known_options
    def serve(self, config: Config | None = None) -> NoReturn:
        """Serve until told to stop, then end the process; as ``citius serve``, without a command line."""
        from citius.serving.server import serve

        raise SystemExit(serve(self, config))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Say how it is served: servers of ASGI call what is no ASGI application.

        Raises:
            TypeError: Always, but at the start, which fails.
        """
        text = (
            "a citius.App is served by `citius serve module:app`; for servers of ASGI there is app.asgi(), "
            "as in `asgi = app.asgi()` and module:asgi"
        )
        if scope["type"] != "lifespan":
            raise TypeError(text)
        await receive()
        await send({"type": "lifespan.startup.failed", "message": text})

    @with_known_options
    def asgi(self, config: Config | None = None) -> ASGIAdapter:
        """This application as an ASGI 3 application: for other servers, and for ASGI middleware around it.

        Args:
            config: Limits, threads and compression; sockets and workers are the server's. The defaults
                without it.
        """
        made = self.asgi_adapter
        if made is None or config is not None:
            from weakref import ref

            from citius.web.interop.asgi import ASGIAdapter

            made = ASGIAdapter(self, config)
            # Weak: what it serves with keeps the application.
            self._asgi = ref(made)
        return made

    @property
    def asgi_adapter(self) -> ASGIAdapter | None:
        """What ``asgi`` has made, while it is in use."""
        return None if self._asgi is None else self._asgi()

    # --- serving (what server.py and testing.py call) -------------------------------------------

    def freeze(
        self,
        make_pool: Callable[[], BlockingPool],
        report: Callable[[Request, BaseException], object] | None = None,
        *,
        all_in_pool: bool = False,
        compiled_threads: int = 0,
        compiled_queue_max: int = 1024,
        interpret_compiled: bool = False,
        development: bool = False,
        outermost: tuple[Middleware, ...] = (),
    ) -> Native:
        """Make the gateway; nothing can be added afterwards.

        Args:
            make_pool: Called once, if there is a handler that blocks.
            report: Called with exceptions that no handler expects; the log is where they go
                otherwise.
            all_in_pool: Call every ``def`` handler in the pool, because its host lets them wait there.
            compiled_threads: Threads for compiled handlers with ``pool=True``; 0: one per processor.
            compiled_queue_max: Requests that may wait for one of them.
            interpret_compiled: Call functions with ``compiled=True`` as plain Python.
            development: Serve the documentation, unless the application says otherwise.
            outermost: Middleware of the server's own, around all Python handlers.

        Raises:
            ConfigError: A route or a signature that cannot work.
        """
        self._find_executors()
        return make_gateway(
            self,
            make_pool,
            report or log_unexpected,
            all_in_pool=all_in_pool,
            compiled_threads=compiled_threads or processors(),
            compiled_queue_max=compiled_queue_max,
            interpret_compiled=interpret_compiled,
            development=development,
            outermost=outermost,
        )

    def _find_executors(self) -> None:
        """Give routes their executors: those of their application, or of one around it."""
        apps = self._apps()
        handlers = [route.handler for app in apps for route in app.declared_routes]
        if any(hasattr(handler, "_citius_executor") for handler in handlers):
            from citius.web.execution.executors import find_executors

            known: dict[str, NamedExecutor] = {}
            for app in reversed(apps):
                known.update(app._executors)
            find_executors(handlers, known)

    async def start(self) -> None:
        """Enter the lifespan and call the start-up hooks, mounted applications' after one's own.

        Dependencies of the application are called after them. If one of these raises, the lifespans that
        were entered are left before the exception is passed on.
        """
        if self.cluster is not None:
            await self.cluster.start(self._share)
        try:
            self._end = await lifecycle.start(
                self, self._all_hooks(), self._of_app, lambda: self.on_broken()
            )
            for executor in self._all_executors():
                executor.start()
            for one in self._forwards():
                await one.start()
        except BaseException:
            await self._let_go()
            raise

    async def stop(self) -> None:
        """Undo ``start`` in reverse; every hook is called even if one before it raised or was cancelled."""
        end, self._end = self._end, None
        try:
            if end is not None:
                await end()
        finally:
            await self._let_go()

    def _forwards(self) -> list[Any]:
        """What ``forward`` has declared, here and in mounted applications."""
        handlers = (route.handler for app in self._apps() for route in app.declared_routes)
        found = (getattr(handler, "citius_forward", None) for handler in handlers)
        return list(dict.fromkeys(one for one in found if one is not None))

    async def _let_go(self) -> None:
        for one in self._forwards():
            await one.stop()
        for executor in self._all_executors():
            executor.stop()
        if self.cluster is not None:
            await self.cluster.stop()

    def _all_executors(self) -> list[NamedExecutor]:
        return [executor for app in self._apps() for executor in app._executors.values()]

    def share_with_workers(self, share: Callable[[str, SharedRoom], object]) -> None:
        """Have ``share(name, room)`` called for every room and broadcast, to make it one in all workers.

        A cluster with an engine for messages reaches the other workers too, and has done it at the start.
        """
        if self.cluster is None or not self.cluster.has_messages:
            self._share(share)

    def _share(self, share: Callable[[str, SharedRoom], object]) -> None:
        """Call ``share(name, room)`` for every room and broadcast there is and will be."""
        for index, app in enumerate(self._apps()):

            def share_one(name: str, one: SharedRoom, prefix: str = str(index)) -> None:
                share(prefix + name, one)

            app._on_shared = share_one
            for name, room in app._rooms.items():
                share_one(f":{name}", app._gap_rooms.get(name, room))
            for name, broadcast in app._broadcasts.items():
                share_one(f"!{name}", broadcast)

    @property
    def endpoints(self) -> list[Endpoint]:
        """Everything that can be called: routes, WebSockets and procedures, mounted ones included.

        Raises:
            ConfigError: A signature does not fit.
        """
        return endpoints_of(self)

    @property
    def procedures(self) -> list[Procedure]:
        """All procedures, those of mounted applications included.

        Raises:
            ConfigError: Two have the same name.
        """
        found: dict[str, Procedure] = {}
        members = {id(member.app): member for member in reversed(list(self.walk()))}
        for member in reversed(members.values()):
            around = (*member.dependencies, *member.app._dependencies)
            inner = member.middleware[len(self._middleware) :]
            for one in member.app._procedures:
                one = replace(one, dependencies=(*around, *one.dependencies), middleware=inner)
                if one.name in found:
                    raise ConfigError(
                        f"two procedures are called {one.name!r}: {checks.describe(found[one.name].handler)} "
                        f"and {checks.describe(one.handler)}"
                    )
                found[one.name] = one
        return list(found.values())

    @property
    def session_calls(self) -> list[SessionCalls]:
        """What ``webtransport_rpc`` has declared here."""
        return self._session_calls

    @property
    def connects(self) -> list[Connect]:
        """What ``connect`` has said."""
        return self._connects

    def add_routes(self, routes: Sequence[Route]) -> None:
        """Add routes that are made when it is frozen."""
        known = {(route.method, route.pattern) for route in self._own_routes}
        self._own_routes += [one for one in routes if (one.method, one.pattern) not in known]

    @property
    def static_mounts(self) -> list[Mount]:
        """The static mounts that call no Python code, with their full prefixes."""
        return [
            full for one in self.walk() for full in one.statics() if not one.passes_python(full)
        ]

    @property
    def mcp_servers(self) -> list[MCPServer]:
        """What ``mcp`` has made."""
        return self._mcp

    @property
    def run_keeper(self) -> RunKeeper | None:
        """What keeps the runs of the application, if it has any."""
        return self._run_keeper

    def set_run_keeper(self, keeper: RunKeeper) -> None:
        """Have it keep the runs: it is linked with those of other workers, and stops with the application."""
        self._run_keeper = keeper
        self._broadcasts["\0runs"] = cast("Broadcast", keeper.bus)
        self._hooks.shutdown.append(keeper.stop)

    @property
    def own_dependencies(self) -> tuple[Depends, ...]:
        """Those of all that it serves itself."""
        return self._dependencies

    @property
    def own_statics(self) -> list[Mount]:
        """The static mounts of this application itself."""
        return self._statics

    @property
    def needs_loop(self) -> str:
        """Why this application cannot be served without an event loop; empty if it can."""
        from citius.web.application.loops import needs_loop

        return needs_loop(self)

    @property
    def uses_loop(self) -> str:
        """What of this application may use an event loop; empty if nothing does that is declared."""
        from citius.web.application.loops import uses_loop

        return uses_loop(self)

    @property
    def live_parts(self) -> dict[str, Collection[object]]:
        """What is declared here beside handlers that tasks, timers or hooks keep going, by what it is."""
        return {
            "start-up hooks": self._hooks.startup,
            "shutdown hooks": self._hooks.shutdown,
            "mounted ASGI applications": self._lifespans,
            "ASGI middleware": (True,) if self._has_asgi_middleware else (),
            "WebSockets or sessions": self.declared_sockets,
            "procedures": self._procedures,
            "procedures by Connect": self._connects,
            "procedures in sessions": self._session_calls,
            "tools": self._mcp,
            "rooms": self._rooms,
            "broadcasts": self._broadcasts,
            "executors": self._executors,
        }

    def _apps(self) -> list[App]:
        """This application and those below it, each once however often it is mounted."""
        return list({id(one.app): one.app for one in self.walk()}.values())

    def _all_hooks(self) -> list[lifecycle.Hooks]:
        """Its own, those of mounted applications, then the lifespans of mounted ASGI applications."""
        apps = self._apps()
        return [app._hooks for app in apps] + [one for app in apps for one in app._lifespans]

    def walk(
        self,
        prefix: str = "",
        middleware: tuple[Middleware, ...] = (),
        errors: tuple[ErrorHandlers, ...] = (),
        dependencies: tuple[Depends, ...] = (),
    ) -> Generator[Member]:
        """This application and all below it, with what those around it share."""
        middleware = (*middleware, *self._middleware)
        errors = (self._errors, *errors)
        yield Member(prefix, self, middleware, errors, dependencies)
        for inner_prefix, app in self._mounts:
            around = (*middleware, Border(self, app)) if middleware else ()
            yield from app.walk(
                prefix + inner_prefix, around, errors, (*dependencies, *self._dependencies)
            )

    @property
    def about(self) -> OpenAPI:
        """What the documentation says of it."""
        return self._openapi

    def url_for(self, name: str, /, **parameters: object) -> str:
        """The path of the route with this name; parameters that are not in the path go into the query.

        A route is called like its handler, unless its decorator has ``name=``.

        Raises:
            LookupError: There is no such route, or it has a parameter without a value.
        """
        urls = self._urls
        if urls is None:
            from citius.web.routing.urls import Urls

            urls = Urls(self.endpoints)
            # Before that, routes can still be added.
            self._urls = urls if self._frozen else None
        return urls.path(name, parameters)

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI document (3.1), as ``/openapi.json`` has it."""
        from citius.web.openapi.document import document

        return document(self.endpoints, self._openapi)

    def set_lifespan_state(self, state: dict[str, object] | None) -> None:
        """Have requests begin with this in their ``state``."""
        self._lifespan_state = state

    @property
    def error_handlers(self) -> ErrorHandlers:
        """Its own error handlers."""
        return self._errors

    @property
    def redirects_slashes(self) -> bool:
        """Whether a path that exists with another slash at its end is redirected there."""
        return self._redirect_slashes

    @property
    def has_asgi_middleware(self) -> bool:
        """Whether ASGI middleware wants to hear of exceptions, in it or in an application below it."""
        return any(app._has_asgi_middleware for app in self._apps())

    @property
    def own_middleware(self) -> tuple[Middleware, ...]:
        """Its own middleware, the first one outermost."""
        return tuple(self._middleware)

    @property
    def hooks(self) -> lifecycle.Hooks:
        """What is called when it starts and stops."""
        return self._hooks

    @property
    def app_dependencies(self) -> AppDependencies:
        """Dependencies of the application, known once it is frozen."""
        return self._of_app
