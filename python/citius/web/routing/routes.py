"""Routes: how each declared route becomes one of the extension's.

Everything here runs once per process, when gateway.py makes a gateway: which arguments a handler gets
(binding.py), and whether there is anything between the extension and the handler at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from citius._core import CompiledHandler, Native, Response
from citius.errors import ConfigError
from citius.records import record
from citius.serial import plain
from citius.web.binding.bind import bind_endpoint
from citius.web.declarations import codecs
from citius.web.declarations.annotations import is_encoded
from citius.web.declarations.checks import describe
from citius.web.responses.results import declared_response
from citius.web.routing.mounted import entered
from citius.web.routing.request_chain import (
    Failures,
    bound_to,
    compose,
    finish,
    spread,
    unmatched_error,
)
from citius.web.routing.static import fallback_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import DeclaredResponse, Request
    from citius.web.application.app import App
    from citius.web.binding.forms import FormLimits
    from citius.web.binding.signature import Kind
    from citius.web.execution.thread_pool import BlockingPool
    from citius.web.middleware.base import AnyMiddleware as Middleware
    from citius.web.middleware.base import ByChain, Declared
    from citius.web.routing.declared_routes import Route
    from citius.web.routing.endpoint import Endpoint
    from citius.web.routing.request_chain import ErrorHandlers, Report

    # What answers requests that no route takes, and whether it is a coroutine function.
    Answer = tuple[Callable[..., Any], bool]
    Fallback = Callable[[Request], Response | None]


@record(slots=True)
class Planned:
    """A route with its full path, and what stands around it."""

    route: Route
    endpoint: Endpoint
    middleware: tuple[Declared, ...]
    """Outer ones first."""
    errors: tuple[ErrorHandlers, ...]
    """Error handlers, inner ones first."""


@record(slots=True)
class Making:
    """A gateway that is being made: what all its routes and sockets have in common."""

    app: App
    native: Native
    pool: BlockingPool | None
    all_in_pool: bool
    """Whether ``def`` handlers are called in threads of the pool."""
    report: Report


def set_unmatched(native: Native, app: App, report: Report) -> None:
    """Send what no route takes through Python, where middleware or an error handler is to see it.

    Below the prefix of a mounted application these are its own, within those of the applications around it.
    """
    answers: dict[str, Answer] = {}
    # A fallback of the root is not for the paths of other applications that are mounted.
    has_fallback = any(mount.fallback for one in app.walk() for mount in one.app.own_statics)
    for member in app.walk():
        errors = member.errors
        first, middleware = entered(bound_to(member.middleware, "", None, None), member.app)
        has_handler = any({404, 405, 426} & one.by_status.keys() or one.by_type for one in errors)
        if middleware or has_handler or has_fallback:
            fallback = fallback_of(one for one in member.statics() if one.is_root)
            own = _unmatched(middleware, Failures(errors, report), fallback)
            # The first application that is mounted at a prefix is the one whose routes are found.
            answers.setdefault(member.prefix, own if first is app else _within(first, own))
    if not answers:
        return
    if "" not in answers:
        answers[""] = _unmatched((), Failures((app.error_handlers,), report))
    answer, is_async = answers.pop("")
    if answers:
        answer, is_async = _by_prefix(answers, answer, is_async)
    native.set_unmatched(answer, kind="async" if is_async else "def")


def _unmatched(
    middleware: tuple[Middleware | ByChain, ...],
    failures: Failures,
    fallback: Fallback | None = None,
) -> Answer:
    """What answers requests without a route, and whether it is a coroutine function."""
    # There are few different responses (one per Allow), so their chains are kept.
    chains: dict[tuple[int, str], Callable[[Request], Any]] = {}

    def composed(respond: Callable[[Request], Response]) -> tuple[Callable[[Request], Any], Kind]:
        return compose(respond, "def", middleware, failures, None)

    def answer(request: Request, status: int, detail: str) -> Any:
        if status == 308:  # of a location that the client has made
            return composed(lambda request: Response(b"", 308, {"location": detail}))[0](request)
        chain = chains.get((status, detail))
        if chain is None:
            chain, _ = composed(_raising(status, detail, fallback))
            chains[status, detail] = chain
        return chain(request)

    _, kind = composed(_raising(404, "", fallback))
    return answer, kind == "async"


def _within(app: object, answer: Answer) -> Answer:
    """What answers requests without a route in a mounted application: that of the outermost application."""
    call, is_async = answer

    def within(request: Request, status: int, detail: str) -> Any:
        request._set_app(app)  # pyright: ignore[reportPrivateUsage]
        return call(request, status, detail)

    return within, is_async


def _raising(status: int, allow: str, fallback: Fallback | None) -> Callable[[Request], Response]:
    def unmatched(request: Request) -> Response:
        if status == 204:
            return _allowed(allow)
        if status == 404 and fallback is not None and (page := fallback(request)) is not None:
            return page
        raise unmatched_error(status, allow)

    return unmatched


def _by_prefix(inner: dict[str, Answer], outer: Callable[..., Any], is_async: bool) -> Answer:
    """The answer of the innermost application whose prefix a path has."""
    longest_first = sorted(inner.items(), key=lambda item: -len(item[0]))

    def answer(request: Request, status: int, detail: str) -> Any:
        path = request.path
        for prefix, (own, _) in longest_first:
            if path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/"):
                return own(request, status, detail)
        return outer(request, status, detail)

    async def answer_async(request: Request, status: int, detail: str) -> Any:
        return await finish(answer(request, status, detail))

    if is_async or any(one for _, one in inner.values()):
        return answer_async, True
    return answer, False


def _allowed(allow: str) -> Response:
    """The response to OPTIONS for a path that has no handler of its own for it (RFC 9110 §9.3.7)."""
    return Response(b"", 204, {"allow": allow} if allow else {})


def native_of(route: Route, pattern: str, has_middleware: bool, interpret: bool) -> Route:
    """The route with native code for a handler, or with a Python function around it."""
    assert route.compiled is not None, "asked before"
    made = route.compiled.handler_of(route.handler, pattern, has_middleware, interpret)
    if isinstance(made, CompiledHandler):
        return replace(route, handler=made)
    kinds: dict[Kind, Kind] = {
        "compiled": "def",
        "pooled": "blocking",
        "goroutine": "def" if interpret else "async",
        "pooled_goroutine": "blocking" if interpret else "async",
    }
    return replace(route, handler=made, kind=kinds[route.kind], compiled=None)


def add_socket(making: Making, endpoint: Endpoint, errors: tuple[ErrorHandlers, ...]) -> None:
    """Hand a path of WebSockets or of sessions to the extension, wrapped in what there is to wrap it in."""
    from citius.web.realtime.websockets import bind_websocket
    from citius.web.routing.websocket_chain import around_sockets, compose_socket

    if making.all_in_pool and (serial := plain(endpoint.handler)) is not None:
        # A greenlet of gevent carries it, and waits for itself.
        endpoint = replace(endpoint, handler=serial, kind="blocking")
    bound, pattern, name = bind_websocket(endpoint), endpoint.pattern, endpoint.where
    call, args, kind = bound.call, bound.args, endpoint.kind
    parts = around_sockets(endpoint, kind)
    first, around = entered(parts, endpoint.app)
    is_session = endpoint.protocol == "webtransport"
    is_composed = bool(around) or any(e.by_type or e.by_status for e in errors[:-1])
    if is_composed or is_session:
        call, args = spread(call, args), (None,)
    if is_composed:
        failures = Failures(errors, making.report)
        call, kind = compose_socket(call, kind, around, failures, making.pool)
    assert kind in ("async", "blocking"), "as sockets are declared"
    native, inner = making.native, None if first is making.app else first
    try:
        if is_session:
            from citius.web.realtime.webtransport import handler_of_session

            native.add_webtransport(pattern, handler_of_session(call), name=name, app=inner)
            return
        native.add_websocket(pattern, call, kind=kind, name=name, args=args, app=inner)
    except ValueError as error:
        what = "WebTransport" if is_session else "WebSocket"
        raise ConfigError(f"{what} {pattern} for {name} cannot be added: {error}") from None


def add_route(making: Making, planned: Planned, declared_kind: Kind) -> None:
    """Hand one route to the extension, wrapped in what there is to wrap it in.

    Args:
        making: The gateway.
        planned: The route.
        declared_kind: How the handler is called where compiled code is not interpreted.

    Raises:
        ConfigError: Another route has its method and path, or it cannot be served.
    """
    native, pool, all_in_pool = making.native, making.pool, making.all_in_pool
    route, endpoint, errors = planned.route, planned.endpoint, planned.errors
    pattern = endpoint.pattern
    if route.compiled is not None:
        # Compiled code sees no application.
        return _try_add(native, route, pattern, route.handler, route.kind, ())
    if is_encoded(endpoint.result):
        _ = codecs.encode_json  # imports msgspec, for which the first request would wait
    mounted_errors = any(e.by_type or e.by_status for e in errors[:-1])
    bound_middleware = bound_to(
        planned.middleware, route.method, pattern, route.handler, declared_kind
    )
    first, middleware = entered(bound_middleware, endpoint.app)
    is_composed = bool(middleware) or mounted_errors
    if all_in_pool and (serial := plain(route.handler)) is not None:
        # A greenlet of gevent carries it, and waits for itself.
        route = replace(route, handler=serial, kind="def")
        endpoint = replace(endpoint, handler=serial, kind="def")
    response = None
    if not (is_composed or all_in_pool or route.continues) and is_sent_at_once(endpoint):
        response = declared_response(endpoint)
    bound = bind_endpoint(endpoint, pool, responds=response is None)
    call, args, kind = bound.call, bound.args, bound.kind
    if route.continues and kind == "async":
        from citius.web.execution.background import continuing

        call = continuing(making.app, call, endpoint.where)
    # A pool's thread cannot run a coroutine, so an error handler that is one makes the route one.
    needs_await = kind == "blocking" and any(e.any_async for e in errors)
    if is_composed or needs_await:
        failures = Failures(errors, making.report)
        alone = None if args else call
        call, kind = compose(spread(call, args), kind, middleware, failures, pool, alone)
        args = (None,)
    if all_in_pool and kind == "def":
        kind = "blocking"
    form = _form_limits(route, endpoint)
    inner = None if first is making.app else first
    _try_add(native, route, pattern, call, kind, args, form, response, inner)


def is_sent_at_once(endpoint: Endpoint) -> bool:
    """Whether nothing is between handler and extension: no thread, and no dependency to clean up."""
    return endpoint.kind != "blocking" and not any(
        one.is_generator for one in endpoint.dependencies
    )


def _form_limits(route: Route, endpoint: Endpoint) -> FormLimits | None:
    """What a form in the body may have; ``None`` for routes that read none."""
    if route.form is None and any(p.source in ("form", "file") for p in endpoint.inputs):
        from citius.web.binding.forms import FormLimits

        return FormLimits()
    return route.form


def _try_add(
    native: Native,
    route: Route,
    pattern: str,
    call: Callable[..., Any],
    kind: Kind,
    args: tuple[str | None, ...],
    form: FormLimits | None = None,
    declared: DeclaredResponse | None = None,
    app: object = None,
) -> None:
    forward: Any = getattr(route.handler, "citius_forward", None)
    try:
        native.add(
            route.method,
            pattern,
            call,
            kind=kind,
            name=describe(route.handler),
            args=args,
            stream=route.stream,
            body_bytes_max=route.body_bytes_max,
            form=form,
            declared=declared,
            compress=route.levels,
            app=app,
            forwards=route.forwards,
            # Where its own handler is called, nothing is around it that would have to see a request.
            direct=forward.direct if forward is not None and call is forward.handler else None,
        )
        if route.operation.is_procedure:
            native.mark_procedure(pattern)
    except ValueError as error:
        raise ConfigError(
            f"{route.method} {pattern} for {describe(route.handler)} cannot be added: {error}"
        ) from None
