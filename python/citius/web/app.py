"""``App``: routes, middleware, error handlers and hooks, until ``freeze`` makes a gateway of them.

Everything is decided at ``freeze``, once per process (routes.py). Without middleware and without error
handlers of a mounted application a route costs no Python frame but its handler's own.

Middleware runs in the order it was added, the first one outermost, around the answers of error handlers
too; it also sees requests that no route matches. What it gets back from ``next`` is a ``Response``.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, overload

from citius._core import Native, Room
from citius.errors import ConfigError
from citius.process.processors import processors
from citius.web import checks
from citius.web.compose import ErrorHandlers, finish, log_ended, log_unexpected, on_error_of
from citius.web.procedures import Procedure, add, procedure
from citius.web.routes import (
    Route,
    RouteOptions,
    SocketRoute,
    add_route,
    add_socket,
    levels_of,
    native_of,
    set_unmatched,
    with_head,
)
from citius.web.signature import Kind, kind_of
from citius.web.static import Mount

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable
    from contextlib import AbstractAsyncContextManager
    from typing import Unpack

    from citius._core import Request
    from citius.settings.config import Config
    from citius.web.compiled import Compiled
    from citius.web.middleware.base import AnyMiddleware as Middleware
    from citius.web.pool import BlockingPool

    Hook = Callable[[], Any]

_HandlerT = TypeVar("_HandlerT", bound="Callable[..., Any]")
_ErrorHandlerT = TypeVar("_ErrorHandlerT", bound="Callable[[Request, Any], Any]")
_MiddlewareT = TypeVar("_MiddlewareT", bound="Middleware")
_HookT = TypeVar("_HookT", bound="Hook")
_CheckT = TypeVar("_CheckT", bound="Callable[[], object]")


class App:
    """An application: add handlers with its decorators, then ``citius serve module:app``.

    Args:
        lifespan: An asynchronous context manager around the time the application serves; called
            with the application.
    """

    def __init__(
        self, *, lifespan: Callable[[App], AbstractAsyncContextManager[object]] | None = None
    ) -> None:
        if lifespan is not None:
            checks.check_lifespan(lifespan)
        self.state = SimpleNamespace()
        """A place for what handlers share: pools, clients, models."""
        self._routes: list[Route] = []
        self._sockets: list[SocketRoute] = []
        self._rooms: dict[str, Room] = {}
        self._mounts: list[tuple[str, App]] = []
        self._statics: list[Mount] = []
        self._procedures: list[Procedure] = []
        self._middleware: list[Middleware] = []
        self._errors = ErrorHandlers()
        self._startup: list[Hook] = []
        self._shutdown: list[Hook] = []
        self._readiness: list[Callable[[], object]] = []
        self._lifespan = lifespan
        self._lifespan_open: AbstractAsyncContextManager[object] | None = None
        self._frozen = False
        self._on_room: Callable[[str, Room], object] | None = None

    # --- declaring ------------------------------------------------------------------------------

    def route(
        self,
        pattern: str,
        *,
        methods: Iterable[str] = ("GET",),
        blocking: bool = False,
        stream: bool = False,
        body_bytes_max: int | None = None,
        compress: str | bool = True,
        compiled: object = None,
        pool: bool = False,
        content_type: str | None = None,
    ) -> Callable[[_HandlerT], _HandlerT]:
        """Answer requests for ``pattern`` with the decorated function.

        Args:
            pattern: A path; ``{name}`` is one segment, ``{name:int}`` one that is a number (also
                ``float``, ``uuid``), ``{name:path}`` all the rest.
            methods: ``GET`` brings ``HEAD`` with it, unless ``HEAD`` has a handler of its own.
            blocking: Call the handler (a ``def``) in a thread, because it waits for something.
            stream: Call the handler when the head of the request is there; it reads the body itself,
                with ``request.stream()`` or ``await request.read()``.
            body_bytes_max: Bytes a body may have, whatever ``--body-bytes-max`` says; more is a 413.
            compress: ``False`` sends responses as they are; a text such as ``"br=9, gzip=6"`` has
                ``--compress`` work at these levels.
            compiled: ``True`` compiles the decorated function with numba. Native code (a capsule, a ctypes
                function, one of ``load_handlers()``, an address) answers in its place; then there need
                be no function. See docs/guides/compiled-handlers.md.
            pool: Call compiled code in a thread without the GIL, because it takes long.
            content_type: The media type of what compiled code writes.
        """
        names = [method.upper() for method in methods]
        checks.check_pattern(pattern, f"app.{names[0].lower()}" if len(names) == 1 else "app.route")
        if not names:
            raise ConfigError(f"the route {pattern} has no method")
        if compiled is not None and compiled is not False:
            from citius.web.compiled import Compiled

            if blocking or stream:
                raise ConfigError(
                    f"the route {pattern} is compiled: its handler gets the whole body and waits for "
                    "nothing; drop blocking and stream, and use pool=True if it takes long"
                )
            made = Compiled(compiled, content_type=content_type, pool=pool)
            return self._add_compiled(pattern, names, made, body_bytes_max, levels_of(compress))
        if pool or content_type is not None:
            raise ConfigError(f"the route {pattern} has pool or content_type, but is not compiled")

        levels = levels_of(compress)

        def add(handler: _HandlerT) -> _HandlerT:
            self._check_open()
            kind = kind_of(handler, blocking=blocking)
            checks.check_returns_no_status(handler)
            route = Route("", pattern, handler, kind, stream, body_bytes_max, levels)
            self._routes += [replace(route, method=name) for name in names]
            return handler

        return add

    def _add_compiled(
        self,
        pattern: str,
        methods: list[str],
        compiled: Compiled,
        body_bytes_max: int | None,
        levels: list[tuple[str, int]] | None,
    ) -> Callable[[_HandlerT], _HandlerT]:
        from citius.web.compiled import no_function

        self._check_open()
        kind: Kind = "pooled" if compiled.pool else "compiled"
        route = Route("", pattern, no_function, kind, False, body_bytes_max, levels, compiled)
        made = [replace(route, method=method) for method in methods]

        def add(handler: _HandlerT) -> _HandlerT:
            self._check_open()
            self._routes += [replace(route, handler=handler) for route in made]
            return handler

        if compiled.native is True:
            return add
        self._routes += made
        return lambda handler: handler

    def get(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for GET (and HEAD)."""
        return self.route(pattern, methods=("GET",), **options)

    def post(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for POST."""
        return self.route(pattern, methods=("POST",), **options)

    def put(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for PUT."""
        return self.route(pattern, methods=("PUT",), **options)

    def delete(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for DELETE."""
        return self.route(pattern, methods=("DELETE",), **options)

    def patch(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for PATCH."""
        return self.route(pattern, methods=("PATCH",), **options)

    def options(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for OPTIONS."""
        return self.route(pattern, methods=("OPTIONS",), **options)

    def head(
        self, pattern: str, **options: Unpack[RouteOptions]
    ) -> Callable[[_HandlerT], _HandlerT]:
        """``route`` for HEAD, where GET's handler would do too much."""
        return self.route(pattern, methods=("HEAD",), **options)

    def websocket(self, pattern: str) -> Callable[[_HandlerT], _HandlerT]:
        """Talk to clients that ask for a WebSocket at ``pattern`` with the decorated function.

        It gets the :class:`WebSocket`, and parameters of the path by their names. A ``def`` gets a
        :class:`SerialWebSocket` and runs in a thread of the pool, under gevent in a greenlet. Until it sends,
        receives or accepts, it may return a ``Response`` or raise an ``HTTPError`` instead. Middleware is for
        requests, and not called.
        """
        checks.check_pattern(pattern, "app.websocket")

        def add(handler: _HandlerT) -> _HandlerT:
            self._check_open()
            is_async = kind_of(handler, blocking=False) == "async"
            self._sockets.append(SocketRoute(pattern, handler, "async" if is_async else "blocking"))
            return handler

        return add

    def room(self, name: str, *, slow: Literal["close", "drop"] = "close") -> Room:
        """The room of this name, made when it is first asked for.

        Args:
            name: Rooms of one name are one room, in all workers of a server.
            slow: What becomes of a member that does not read what it is sent: it is closed with 1013, or
                misses messages.
        """
        room = self._rooms.get(name)
        if room is None:
            room = self._rooms[name] = Room(slow=slow)
            if self._on_room is not None:
                self._on_room(name, room)
        return room

    def mount(self, prefix: str, app: App) -> None:
        """Put the routes of ``app`` under ``prefix``, with its middleware, error handlers and hooks.

        The route ``/`` of ``app`` becomes ``prefix`` itself.
        """
        self._check_open()
        if not prefix.startswith("/") or prefix.endswith("/"):
            raise ConfigError(
                f"the prefix of a mount begins with a slash and ends without one, got {prefix!r}"
            )
        checks.check_mounted(app, prefix, App)
        if app is self or any(mounted is self for _, mounted, *_ in app._walk("", (), ())):
            raise ConfigError(f"mounting at {prefix} would make the application contain itself")
        self._mounts.append((prefix, app))

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
    ) -> None:
        """Serve the files of ``directory`` below ``prefix``, without calling any Python code.

        They come before the routes and pass no middleware. ``"/"`` serves what is there and leaves the
        rest to the routes.

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
            )
        )

    @overload
    def rpc(self, name: _HandlerT, /) -> _HandlerT: ...
    @overload
    def rpc(
        self, name: str | None = None, /, *, blocking: bool = False, deadline_s: float | None = None
    ) -> Callable[[_HandlerT], _HandlerT]: ...
    def rpc(
        self,
        name: Any = None,
        /,
        *,
        blocking: bool = False,
        deadline_s: float | None = None,
    ) -> Any:
        """Let other services call the decorated function, at the address of ``--rpc``.

        ``@app.rpc``, ``@app.rpc("other.name")``, alone or on top of a route's decorator. Parameters are
        checked against their annotations, the result is encoded as MessagePack or JSON, and ``RpcError``
        is how to say no. Calls pass no middleware.

        Args:
            name: What it is called by; its own name without one.
            blocking: Call the function (a ``def``) in a thread, because it waits for something.
            deadline_s: How long a call may take; ``--rpc-call-ms`` without it.
        """
        self._check_open()

        def declare(handler: _HandlerT) -> _HandlerT:
            given = name if isinstance(name, str) else None
            self._procedures.append(
                procedure(handler, given, blocking=blocking, deadline_s=deadline_s)
            )
            return handler

        return declare(name) if callable(name) else declare

    def middleware(self, middleware: _MiddlewareT) -> _MiddlewareT:
        """Wrap every request: ``def (request, next)``, ``async def (request, next)``, a ``Middleware``.

        ``next(request)`` gives the ``Response`` of what is inside, awaited in an ``async def``, whatever
        failed there. A plain ``def`` cannot look at the response of an ``async def`` handler.
        """
        self._check_open()
        checks.check_middleware(middleware)
        self._middleware.append(middleware)
        return middleware

    def exception_handler(
        self, what: type[BaseException] | int
    ) -> Callable[[_ErrorHandlerT], _ErrorHandlerT]:
        """Answer exceptions of a class, or an error status, with the decorated ``(request, exception)``.

        The handler of the closest class wins. A status covers ``HTTPError`` with that status, 404
        and 405 for paths and methods without a route, and 500 unhandled exceptions.
        """
        self._check_open()
        checks.check_error_key(what)

        def add(handler: _ErrorHandlerT) -> _ErrorHandlerT:
            checks.check_error_handler(handler)
            if isinstance(what, int):
                self._errors.by_status[what] = handler
            else:
                self._errors.by_type[what] = handler
            return handler

        return add

    def on_startup(self, hook: _HookT) -> _HookT:
        """Call ``hook`` before the server listens; an exception from it ends the start."""
        self._check_open()
        checks.check_hook(hook, "a start-up hook")
        self._startup.append(hook)
        return hook

    def on_shutdown(self, hook: _HookT) -> _HookT:
        """Call ``hook`` when the last request is done; later ones first."""
        self._check_open()
        checks.check_hook(hook, "a shutdown hook")
        self._shutdown.append(hook)
        return hook

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
        """Those of this application and of all that are mounted in it."""
        return [check for app in self._apps() for check in app._readiness]

    def run(self, config: Config | None = None) -> NoReturn:
        """Serve until told to stop, then end the process; as ``citius serve``, without a command line."""
        from citius.serving.server import serve

        raise SystemExit(serve(self, config))

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

        Raises:
            ConfigError: A route or a signature that cannot work.
        """
        walked = list(self._walk("", (), ()))
        pool: BlockingPool | None = None
        procedures = self.procedures
        if (
            all_in_pool
            or any(
                route.kind == "blocking"
                or (route.kind == "pooled" and (middleware or interpret_compiled))
                for _, app, middleware, _ in walked
                for route in app._routes
            )
            or any(one.kind == "blocking" for one in procedures)
            or any(socket.kind == "blocking" for _, app, _, _ in walked for socket in app._sockets)
        ):
            pool = make_pool()
        report = report or log_unexpected
        native = Native(
            app=self,
            on_error=on_error_of(self._errors, report),
            submit=None if pool is None else pool.submit,
            compiled_threads=compiled_threads or processors(),
            compiled_queue_max=compiled_queue_max,
        )
        for prefix, app, middleware, errors in walked:
            app._frozen = True
            for route in with_head(app._routes):
                pattern = prefix if prefix and route.pattern == "/" else prefix + route.pattern
                if route.compiled is not None:
                    route = native_of(route, pattern, bool(middleware), interpret_compiled)
                add_route(native, route, pattern, middleware, errors, pool, all_in_pool, report)
            for socket in app._sockets:
                pattern = prefix if prefix and socket.pattern == "/" else prefix + socket.pattern
                add_socket(native, socket, pattern)
        for one in procedures:
            add(native, one, in_pool=all_in_pool)
        set_unmatched(native, tuple(self._middleware), self._errors, report)
        return native

    async def start(self) -> None:
        """Enter the lifespan and call the start-up hooks, mounted applications' after one's own.

        If one of them raises, the lifespans that were entered are left before it goes on its way.
        """
        try:
            for app in self._apps():
                if app._lifespan is not None:
                    manager = app._lifespan(app)
                    checks.check_manager(manager, app._lifespan)
                    await manager.__aenter__()
                    app._lifespan_open = manager
                for hook in app._startup:
                    await finish(hook())
        except BaseException:
            for app in reversed(self._apps()):
                await app._leave_lifespan()
            raise

    async def stop(self) -> None:
        """Undo ``start`` in reverse; every hook is called even if one before it raised or was cancelled."""
        for app in reversed(self._apps()):
            for hook in reversed(app._shutdown):
                try:
                    await finish(hook())
                except BaseException as error:
                    log_ended(f"the shutdown hook {checks.describe(hook)}", error)
            await app._leave_lifespan()

    async def _leave_lifespan(self) -> None:
        manager, self._lifespan_open = self._lifespan_open, None
        if manager is not None:
            try:
                await manager.__aexit__(None, None, None)
            except BaseException as error:
                log_ended("the end of the lifespan", error)

    def share_rooms(self, share: Callable[[str, Room], object]) -> None:
        """Call ``share(name, room)`` for every room there is and will be, to make it one with others'."""
        for index, app in enumerate(self._apps()):

            def share_one(name: str, room: Room, prefix: str = f"{index}:") -> None:
                share(prefix + name, room)

            app._on_room = share_one
            for name, room in app._rooms.items():
                share_one(name, room)

    @property
    def routes(self) -> list[Route]:
        """All routes with their full patterns, mounted ones included."""
        found: list[Route] = []
        for prefix, app, _, _ in self._walk("", (), ()):
            for route in app._routes:
                pattern = prefix if prefix and route.pattern == "/" else prefix + route.pattern
                found.append(replace(route, pattern=pattern))
        return found

    @property
    def procedures(self) -> list[Procedure]:
        """All procedures, those of mounted applications included.

        Raises:
            ConfigError: Two have the same name.
        """
        found: dict[str, Procedure] = {}
        for app in self._apps():
            for one in app._procedures:
                if one.name in found:
                    raise ConfigError(
                        f"two procedures are called {one.name!r}: {checks.describe(found[one.name].handler)} "
                        f"and {checks.describe(one.handler)}"
                    )
                found[one.name] = one
        return list(found.values())

    @property
    def static_mounts(self) -> list[Mount]:
        """All static mounts with their full prefixes, those of mounted applications included."""
        return [
            replace(mount, prefix=prefix + mount.prefix)
            for prefix, app, _, _ in self._walk("", (), ())
            for mount in app._statics
        ]

    @property
    def needs_loop(self) -> str:
        """Why this application cannot be served without an event loop; empty if it can."""
        for _, app, middleware, errors in self._walk("", (), ()):
            functions = [route.handler for route in app._routes if route.compiled is None]
            functions += [socket.handler for socket in app._sockets]
            if app._lifespan is not None:
                return "the application has a lifespan"
            functions += [*map(checks.step_of, middleware), *(f for e in errors for f in e.all())]
            functions += [one.handler for one in app._procedures]
            for function in functions:
                if (
                    inspect.isasyncgenfunction(function)
                    or kind_of(function, blocking=False) == "async"
                ):
                    return f"{checks.describe(function)} is `async def`"
        return ""

    def _check_open(self) -> None:
        if self._frozen:
            raise ConfigError(
                "the application is being served and can no longer change; add routes, middleware "
                "and handlers when its module is imported"
            )

    def _apps(self) -> list[App]:
        """This application and those below it, each once however often it is mounted."""
        return list({id(app): app for _, app, _, _ in self._walk("", (), ())}.values())

    def _walk(
        self,
        prefix: str,
        middleware: tuple[Middleware, ...],
        errors: tuple[ErrorHandlers, ...],
    ) -> Generator[tuple[str, App, tuple[Middleware, ...], tuple[ErrorHandlers, ...]]]:
        """This application and all below it: prefix, outer to inner middleware, inner to outer errors."""
        middleware = (*middleware, *self._middleware)
        errors = (self._errors, *errors)
        yield prefix, self, middleware, errors
        for inner_prefix, app in self._mounts:
            yield from app._walk(prefix + inner_prefix, middleware, errors)
