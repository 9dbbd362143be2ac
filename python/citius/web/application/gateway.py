"""The gateway of a native application: its declarations in, ``_core.Native`` out, once per process.

Each route becomes an ``Endpoint`` (endpoint.py), and the endpoint one of the extension's routes (routes.py).
Tests: ``tests/gateway/``.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from citius._core import Native
from citius.errors import ConfigError, NotFound
from citius.web.binding.depends.dependencies import Resolver
from citius.web.binding.other_names import add_hints
from citius.web.declarations import checks
from citius.web.middleware.base import Middleware
from citius.web.middleware.fields import BELOW_MOUNT
from citius.web.responses.declared.other_results import (
    check_middleware_results,
    hold_error_handlers,
    refuse_records,
    refuse_records_of_hooks,
)
from citius.web.routing.declared_routes import joined, shape_of, with_head
from citius.web.routing.endpoint import (
    endpoint_of,
    endpoint_of_procedure,
    endpoint_of_socket,
    refusing_recursion,
)
from citius.web.routing.request_chain import on_error_of
from citius.web.routing.routes import (
    Making,
    Planned,
    add_route,
    add_socket,
    native_of,
    set_unmatched,
)
from citius.web.routing.rpc.procedures import add
from citius.web.routing.static import is_mounted, routes_of
from citius.web.routing.static_checks import check_static_mounts

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from citius.web.application.app import App
    from citius.web.execution.thread_pool import BlockingPool
    from citius.web.middleware.base import Declared
    from citius.web.middleware.fields import NamedRoutes
    from citius.web.routing.declared_routes import Route
    from citius.web.routing.endpoint import Endpoint
    from citius.web.routing.request_chain import ErrorHandlers, Report
    from citius.web.routing.rpc.procedures import Procedure


def make_gateway(
    app: App,
    make_pool: Callable[[], BlockingPool],
    report: Report,
    *,
    all_in_pool: bool,
    compiled_threads: int,
    compiled_queue_max: int,
    interpret_compiled: bool,
    development: bool,
    outermost: tuple[Declared, ...],
) -> Native:
    """Make the gateway of an application; ``App.freeze`` says what the arguments mean.

    Raises:
        ConfigError: A route or a signature that cannot work.
    """
    add_hints()
    if development and app.error_handlers.find_last_resort() is None:
        from citius.web.responses.debug_page import traceback_page

        app.error_handlers.by_type[Exception] = traceback_page
    if development and app.error_handlers.find(NotFound()) is None:
        from citius.web.responses.debug_page import routes_page

        about = app.about
        docs = None if about.enabled is False else about.docs
        app.error_handlers.by_status[404] = routes_page(lambda: endpoints_of(app), docs)
    if app.has_asgi_middleware:
        from citius.web.interop.middleware import noting

        report = noting(report)
    needs_pool = all_in_pool or _needs_pool(app, interpret_compiled)
    pool = make_pool() if needs_pool else None
    native = Native(
        app=app,
        on_error=on_error_of(app.error_handlers, report),
        submit=None if pool is None else pool.submit,
        compiled_threads=compiled_threads,
        compiled_queue_max=compiled_queue_max,
    )
    for one in app.walk():
        one.app.close()
    _add_connect_routes(app)
    own, sockets = list(_routes(app)), list(_sockets(app))
    endpoints = [*(one.endpoint for one in own), *(one for one, _ in sockets)]
    _hold_other_results(app, own)
    check_static_mounts(app.walk(), endpoints)
    taken = {one.endpoint.pattern for one in own}
    resolver = Resolver({}, app.app_dependencies)
    documentation = _documentation(app, development, taken, [one.route for one in own], resolver)
    for one in own:
        if one.route.compiled is None:
            one.middleware = (*outermost, *one.middleware)
    making = Making(app, native, pool, all_in_pool, report)
    for one in (*own, *documentation, *_static_routes(app)):
        planned, kind = one, one.endpoint.kind
        if one.route.compiled is not None:
            planned = _compiled(one, resolver, interpret=interpret_compiled)
        with refusing_recursion(planned.endpoint.handler), _naming_the_other(own, one):
            add_route(making, planned, kind)
    check_named_routes(app, endpoints)
    _check_sessions(endpoints)
    for endpoint, errors in sockets:
        endpoint = replace(endpoint, middleware=(*outermost, *endpoint.middleware))
        with refusing_recursion(endpoint.handler):
            add_socket(making, endpoint, errors)
    for one, endpoint in _procedures(app):
        with refusing_recursion(endpoint.handler):
            add(native, one, endpoint, in_pool=all_in_pool)
    _freeze_session_calls(app, native, pool)
    _open_runs_and_uploads(app, own)
    _freeze_mcp(app, own, pool, report, in_pool=all_in_pool)
    if app.redirects_slashes:
        native.redirect_slashes()
    set_unmatched(native, app, report)
    return native


def _compiled(planned: Planned, resolver: Resolver, *, interpret: bool) -> Planned:
    """A compiled route with its native code, or with the Python function around that."""
    endpoint = planned.endpoint
    has_middleware = bool(planned.middleware or endpoint.extra)
    route = native_of(planned.route, endpoint.pattern, has_middleware, interpret)
    if route.compiled is None:
        # Its arguments are those of the Python function.
        of = endpoint.app
        endpoint = replace(endpoint_of(route, endpoint.pattern, resolver), app=of)
    return replace(planned, route=route, endpoint=endpoint)


def _add_connect_routes(app: App) -> None:
    """Make routes of procedures that are called by Connect."""
    for member in app.walk():
        if member.app.connects:
            from citius.web.routing.rpc.connect import connect_routes

            resolver = _resolver(app, member.app)
            for connect in member.app.connects:
                member.app.add_routes(connect_routes(connect, member.app.procedures, resolver))


def _freeze_session_calls(app: App, native: Native, pool: BlockingPool | None) -> None:
    """Tell sessions of WebTransport, and connections of QUIC, which procedures they may call.

    Raises:
        ConfigError: Several paths are those of connections of QUIC.
    """
    inner = [member for member in app.walk() if member.app.session_calls]
    # As the server's own address has them: with the dependencies of all applications around them.
    known = {one.name: (one, endpoint) for one, endpoint in _procedures(app)} if inner else {}
    of_quic: list[str] = []
    for member in inner:
        for calls in member.app.session_calls:
            calls.freeze(native, member.app.procedures, known, pool)
            if calls.is_quic:
                of_quic.append(joined(member.prefix, calls.pattern))
    if len(of_quic) > 1:
        raise ConfigError(
            f"webtransport_rpc has quic=True at {' and '.join(of_quic)}; a connection of QUIC names no path, "
            "so that one has to be chosen"
        )
    for path in of_quic:
        native.offer_rpc(path)


def _open_runs_and_uploads(app: App, own: list[Planned]) -> None:
    """Find where runs and uploads are kept, if there are any."""
    declared = [getattr(one.route.handler, "citius_uploads", None) for one in own]
    for uploads in {id(one): one for one in declared}.values():
        if uploads is not None:
            uploads.open()
    runs = [
        (one.route.handler, one.endpoint)
        for one in own
        if hasattr(one.route.handler, "citius_runs")
    ]
    if runs:
        from citius.web.realtime.runs.runs import open_runs

        open_runs(app, runs)


def _hold_other_results(app: App, own: list[Planned]) -> None:
    """Hold what error handlers and middleware declare to return."""
    members = list(app.walk())
    sockets = list(_sockets(app))
    errors = [member.app.error_handlers for member in members]
    errors += [one for planned in own for one in planned.errors]
    errors += [one for _, around in sockets for one in around]
    hold_error_handlers({id(one): one for one in errors}.values())
    middleware = [one for member in members for one in member.middleware]
    middleware += [one for planned in own for one in planned.middleware]
    middleware += [one for endpoint, _ in sockets for one in endpoint.middleware]
    check_middleware_results({id(one): one for one in middleware}.values())
    for endpoint, _ in sockets:
        refuse_records(endpoint.handler, "the handler of a socket")
    for planned in own:
        forward = getattr(planned.route.handler, "citius_forward", None)
        if forward is not None:
            refuse_records_of_hooks(*forward.hooks)


def _freeze_mcp(
    app: App, own: list[Planned], pool: BlockingPool | None, report: Report, *, in_pool: bool
) -> None:
    """Bind the tools, resources and prompts, if there are any."""
    exposed = [one.endpoint for one in own if one.endpoint.operation.tool is not False]
    if exposed:
        from citius.mcp.route_tools import add_route_tools

        add_route_tools(app, exposed)
    for member in app.walk():
        for server in member.app.mcp_servers:
            server.freeze(app, _resolver(app, member.app), pool, report, in_pool=in_pool)


def _check_sessions(endpoints: list[Endpoint]) -> None:
    """Refuse a middleware that needs sessions where nothing around it gives one.

    Raises:
        ConfigError: There is one.
    """
    for endpoint in endpoints:
        for one in endpoint.middleware:
            # What the application has written may give a session, too.
            if not isinstance(one, Middleware) or not type(one).__module__.startswith("citius."):
                break
            if one.gives_session:
                break
            if one.needs_session:
                raise ConfigError(
                    f"the middleware {type(one).__name__} of {endpoint.where} needs the session of one "
                    "around it: add app.middleware(Sessions(secret)) or StoredSessions(store) before it"
                )


def check_named_routes(app: App, endpoints: list[Endpoint]) -> None:
    """Refuse a middleware whose options name a route that it does not stand around.

    Raises:
        ConfigError: There is one.
    """
    around: dict[int, tuple[Middleware, set[str]]] = {}

    def note(middleware: Iterable[Declared], patterns: Iterable[str]) -> None:
        for one in middleware:
            if isinstance(one, Middleware):
                around.setdefault(id(one), (one, set()))[1].update(patterns)

    about = app.about
    for one in app.walk():
        for mount in one.statics():
            note(one.middleware, [mount.prefix or "/"])
            if one.passes_python(mount):
                note(one.middleware, [mount.prefix + BELOW_MOUNT])
    # The documentation is there in development, or where it is switched on.
    note(app.own_middleware, [one for one in (about.path, about.docs) if one is not None])
    for endpoint in endpoints:
        note(endpoint.middleware, [endpoint.pattern])
    for middleware, patterns in around.values():
        names = middleware.named_routes
        if names is None:
            continue
        missing = names.patterns - {*map(names.name_of, patterns)}
        if missing:
            from difflib import get_close_matches

            name = min(missing)
            close = get_close_matches(name, patterns, 1, 0.5)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise ConfigError(
                f"{names.option} names {name!r}, and there is no such route; {hint}Paths are written as "
                "they are declared, with the prefixes of routers and mounts"
            )
        own = [one for one in endpoints if any(middleware is it for it in one.middleware)]
        _refuse_two_meanings(names, patterns, own)


def _refuse_two_meanings(names: NamedRoutes, patterns: set[str], endpoints: list[Endpoint]) -> None:
    """Refuse a name of a route that is also the prefix of a mount: an exempt page would open all below it.

    Raises:
        ConfigError: There is one.
    """
    mounts = {names.name_of(one): one for one in patterns if one.endswith(BELOW_MOUNT)}
    for one in endpoints:
        below = mounts.get(one.pattern)
        if below is not None and not is_mounted(one.handler):
            raise ConfigError(
                f"{names.option} names {one.pattern!r}, which is the path of {one.where} and the prefix of "
                f"everything that is mounted there; write {below!r} for that, with {one.pattern!r} beside it "
                "for both, or give one of them another path"
            )


@contextmanager
def _naming_the_other(own: list[Planned], planned: Planned) -> Generator[None]:
    """Say in an error which route has the same method and path."""
    try:
        yield
    except ConfigError as error:
        other = _same_path(own, planned)
        if other is None:
            raise
        raise ConfigError(f"{error}; the other is {other.where}") from None


def _same_path(own: list[Planned], planned: Planned) -> Endpoint | None:
    """The route before this one with the same method and path, whatever its parameters are called."""
    shape = shape_of(planned.endpoint.pattern)
    for one in own:
        if one is planned:
            return None
        if one.route.method == planned.route.method and shape_of(one.endpoint.pattern) == shape:
            return one.endpoint
    return None


def endpoints_of(app: App) -> list[Endpoint]:
    """Everything that can be called in an application."""
    found = [one.endpoint for one in _routes(app, heads=False)]
    found += [endpoint for endpoint, _ in _sockets(app)]
    found += [endpoint for _, endpoint in _procedures(app)]
    return found


def session_of(app: App) -> str:
    """A handler of WebTransport sessions; empty if there is none."""
    for member in app.walk():
        for one in member.app.declared_sockets:
            if one.protocol == "webtransport":
                return checks.describe(one.handler)
    return ""


def _routes(app: App, *, heads: bool = True) -> Iterator[Planned]:
    """All routes of the application and of those mounted in it."""
    for member in app.walk():
        resolver = _resolver(app, member.app)
        routes = member.app.declared_routes
        for route in with_head(routes) if heads else routes:
            route = replace(route, dependencies=(*member.dependencies, *route.dependencies))
            endpoint = endpoint_of(route, joined(member.prefix, route.pattern), resolver)
            around = (*member.middleware, *route.middleware)
            endpoint = replace(endpoint, middleware=around, app=member.app)
            yield Planned(route, endpoint, around, (*route.errors, *member.errors))


def _resolver(app: App, inner: App) -> Resolver:
    """What resolves the dependencies of an application that is mounted in ``app``, or is ``app``."""
    overrides = {**inner.dependency_overrides, **app.dependency_overrides}
    return Resolver(overrides, app.app_dependencies)


def _documentation(
    app: App, development: bool, taken: set[str], routes: list[Route], resolver: Resolver
) -> Iterator[Planned]:
    """The routes of the documentation, where it is wanted.

    Paths that are ``taken`` are the application's; a mounted application keeps its own, such as FastAPI its
    ``/docs``, and, unless the documentation is switched on, all paths if it does not say which it has.
    """
    about = app.about
    if not (development if about.enabled is None else about.enabled):
        return
    from citius.web.interop.mounts import keeps
    from citius.web.openapi.pages import documentation_routes

    def is_kept(path: str) -> bool:
        return any(keeps(one, path, if_unknown=about.enabled is None) for one in routes)

    kept = {path for path in (about.path, about.docs) if path is not None and is_kept(path)}
    beside = tuple(f"{path.rstrip('/')}/" for path in kept)
    for route in with_head(documentation_routes(about, app.openapi)):
        if route.pattern in kept or route.pattern.startswith(beside):
            continue
        if route.pattern not in taken:
            endpoint = endpoint_of(route, route.pattern, resolver)
            own = app.own_middleware
            yield Planned(route, replace(endpoint, app=app), own, (app.error_handlers,))


def _static_routes(app: App) -> Iterator[Planned]:
    """The routes of static mounts that have middleware or dependencies around them."""
    for one in app.walk():
        depends = (*one.dependencies, *one.app.own_dependencies)
        for mount in filter(one.passes_python, one.statics()):
            for route in with_head(routes_of(mount, depends)):
                endpoint = endpoint_of(route, route.pattern, _resolver(app, one.app))
                endpoint = replace(endpoint, app=one.app)
                yield Planned(route, endpoint, one.middleware, one.errors)


def _sockets(app: App) -> Iterator[tuple[Endpoint, tuple[ErrorHandlers, ...]]]:
    """All paths of WebSockets, with inner to outer error handlers."""
    for member in app.walk():
        resolver = _resolver(app, member.app)
        for socket in member.app.declared_sockets:
            socket = replace(socket, dependencies=(*member.dependencies, *socket.dependencies))
            endpoint = endpoint_of_socket(socket, joined(member.prefix, socket.pattern), resolver)
            around = (*member.middleware, *socket.middleware)
            endpoint = replace(endpoint, middleware=around, app=member.app)
            yield endpoint, (*socket.errors, *member.errors)


def _procedures(app: App) -> Iterator[tuple[Procedure, Endpoint]]:
    resolver = _resolver(app, app)
    has_connect = any(member.app.connects for member in app.walk())
    for one in app.procedures:
        if has_connect:
            from citius.web.routing.rpc.connect import is_stream, with_streams_refused

            one = with_streams_refused(one) if is_stream(one) else one
        yield one, endpoint_of_procedure(one, resolver)


def _needs_pool(app: App, interpret_compiled: bool) -> bool:
    """Whether something is called in a thread."""
    for member in app.walk():
        inner = member.app
        for route in inner.declared_routes:
            around = (
                *member.middleware, *route.middleware, *member.dependencies, *route.dependencies
            )  # fmt: skip
            is_python = bool(around or interpret_compiled)
            if route.kind == "blocking" or (route.kind == "pooled" and is_python):
                return True
        if any(socket.kind == "blocking" for socket in inner.declared_sockets):
            return True
        if any(server.needs_pool for server in inner.mcp_servers):
            return True
    return any(one.kind == "blocking" for one in app.procedures)
