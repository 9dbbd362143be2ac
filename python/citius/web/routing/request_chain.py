"""What stands between the extension and a handler: error handlers and middleware, composed once.

A chain is a function of the request, or a coroutine function from the first part on that is one. Inside
a chain responses are ``Response`` objects, whatever failed: each part makes one of an exception, so that the
parts around it can add their fields to it. Each is of one request alone (``Request._own``): the application
may keep what it returns, and return it for other requests. Made at ``App.freeze``, and only where there is
something to compose; tests are in tests/gateway/test_app.py.
"""

from __future__ import annotations

import functools
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from citius._core import FAST_PATHS, GuardedCall, Response
from citius.errors import (
    ConfigError,
    HTTPError,
    InternalServerError,
    MethodNotAllowed,
    NotFound,
    comes_from_disconnection,
)
from citius.records import record
from citius.web.declarations.checks import describe, refuse_status
from citius.web.declarations.type_kinds import is_async
from citius.web.middleware.base import ByChain, OnConnections, OnRequests
from citius.web.middleware.base import Middleware as Halves
from citius.web.responses.problems import problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from citius._core import Request
    from citius.web.binding.signature import Kind
    from citius.web.execution.thread_pool import BlockingPool
    from citius.web.middleware.base import AnyMiddleware as Middleware
    from citius.web.middleware.base import Declared

    Report = Callable[[Request, BaseException], object]


@record(frozen=True, slots=True)
class ErrorHandlers:
    """The error handlers of one application."""

    by_type: dict[type[BaseException], Callable[..., Any]] = field(default_factory=lambda: {})
    by_status: dict[int, Callable[..., Any]] = field(default_factory=lambda: {})

    def add(self, what: type[BaseException] | int, handler: Callable[..., Any]) -> None:
        """Note the handler of a class of exceptions, or of a status.

        Raises:
            ConfigError: It has one.
        """
        known: dict[Any, Any] = self.by_status if isinstance(what, int) else self.by_type
        if what in known:
            name = what if isinstance(what, int) else what.__name__
            raise ConfigError(
                f"there are two error handlers of {name}: {describe(known[what])} and {describe(handler)}"
            )
        known[what] = handler

    def all(self) -> list[Callable[..., Any]]:
        """Every one of them."""
        return [*self.by_type.values(), *self.by_status.values()]

    @property
    def any_async(self) -> bool:
        """Whether answering may take a coroutine."""
        return any(map(is_async, self.all()))

    def find(self, error: BaseException) -> Callable[..., Any] | None:
        """The handler of the closest class, or of the status."""
        if not self.by_type and not self.by_status:
            return None
        for cls in type(error).__mro__:
            if cls is Exception or cls is BaseException:
                break
            # A status is more specific than HTTPError itself.
            if (
                cls is HTTPError
                and isinstance(error, HTTPError)
                and error.status_code in self.by_status
            ):
                return self.by_status[error.status_code]
            if cls in self.by_type:
                return self.by_type[cls]
        return None

    def find_last_resort(self) -> Callable[..., Any] | None:
        """The handler of unexpected exceptions."""
        return self.by_type.get(Exception) or self.by_status.get(500)


def _find_handler(
    errors: tuple[ErrorHandlers, ...], error: BaseException
) -> Callable[..., Any] | None:
    """The innermost application's handler for an expected error."""
    for handlers in errors:
        handler = handlers.find(error)
        if handler is not None:
            return handler
    return problem if isinstance(error, HTTPError) else None


def _handler_of(
    request: Request, error: BaseException, errors: tuple[ErrorHandlers, ...], report: Report
) -> Callable[..., Any] | None:
    """What makes a response of an exception, which is reported if it was not expected.

    What the failed handler has deferred is not called; what this one defers is.
    """
    request._forget_deferred()  # pyright: ignore[reportPrivateUsage]
    handler = _find_handler(errors, error)
    if handler is None:
        report(request, error)
        found = (handlers.find_last_resort() for handlers in errors)
        handler = next((one for one in found if one is not None), None)
    elif _KEPT in error.__dict__:
        error.with_traceback(None)
    else:
        # One that the application keeps comes again. Each `raise` adds to its traceback, and so it would
        # hold the frames of all requests before. Not an attribute: its class may allow no other.
        error.__dict__[_KEPT] = True
    return handler


_KEPT: Final = "_citius_seen"
"""Says in the dictionary of an exception that it has been raised for a request."""


def on_error_of(errors: ErrorHandlers, report: Report) -> Callable[[Request, BaseException], Any]:
    """What the extension calls with every exception that leaves a handler."""
    own = (errors,)

    def on_error(request: Request, error: BaseException) -> Any:
        handler = _handler_of(request, error, own, report)
        if handler is None:
            return problem(request, InternalServerError())
        value = handler(request, error)
        if handler is problem:
            return value
        if hasattr(value, "__await__"):
            return _await_error_handler(value, handler)
        return _of_error_handler(value, handler)

    return on_error


async def _await_error_handler(value: Awaitable[Any], handler: Callable[..., Any]) -> Any:
    return _of_error_handler(await value, handler)


def log_unexpected(request: Request, error: BaseException) -> None:
    """The log's line and traceback for an exception that no handler expected.

    That a client leaves during its upload is none of the application's: code that reads the body hears of it
    by an exception.
    """
    from citius.observability.logging import log, log_exception

    if comes_from_disconnection(error) and not request._is_open():  # pyright: ignore[reportPrivateUsage]
        what = f": after the client had gone: {error!r}"
        return log(10, request._message(what))  # pyright: ignore[reportPrivateUsage]
    log_exception(request._message(" failed"), error)  # pyright: ignore[reportPrivateUsage]


def unmatched_error(status: int, allow: str) -> HTTPError:
    """The exception that stands for a path or a method without a route."""
    if status == 405:
        return MethodNotAllowed(headers={"allow": allow})
    if status == 426:
        version = {"sec-websocket-version": "13"}
        return HTTPError(426, "expected a request for a WebSocket", version)
    return NotFound()


def spread(call: Callable[..., Any], args: tuple[str | None, ...]) -> Callable[[Request], Any]:
    """A function of the request alone."""
    if args == (None,):
        return call
    if not args:

        def call_alone(request: Request) -> Any:
            return call()

        return functools.update_wrapper(call_alone, call)

    def call_spread(request: Request) -> Any:
        in_path = request.path_params
        return call(*(request if name is None else in_path[name] for name in args))

    return functools.update_wrapper(call_spread, call)


@record(frozen=True, slots=True)
class Failures:
    """How the parts of a chain make responses of exceptions."""

    errors: tuple[ErrorHandlers, ...]
    """Inner to outer."""
    report: Report
    """Called with exceptions that no handler expects."""

    def respond(self, request: Request, error: Exception) -> Response:
        """The response to an exception; not for handlers that are coroutine functions."""
        try:
            handler = _handler_of(request, error, self.errors, self.report)
            if handler is None:
                return _own(request, problem(request, InternalServerError()))
            value = handler(request, error)
            return _as_response(request, _of_error_handler(value, handler), handler)
        except Exception as second:
            return _twice_failed(request, second)

    def respond_to(self, request: Request, error: Exception) -> Response:
        """``respond``, for callers that are in no ``except``: ``error`` is ``sys.exception()`` there."""
        try:
            raise error
        except Exception as raised:
            return self.respond(request, raised)

    async def respond_async(self, request: Request, error: Exception) -> Response:
        """The response to an exception."""
        try:
            handler = _handler_of(request, error, self.errors, self.report)
            if handler is None:
                return _own(request, problem(request, InternalServerError()))
            value = await finish(handler(request, error))
            return _as_response(request, _of_error_handler(value, handler), handler)
        except Exception as second:
            return _twice_failed(request, second)


def _twice_failed(request: Request, error: Exception) -> Response:
    """The last resort, as citius-py/completion.rs has it where there is no chain."""
    from citius.observability.logging import log_exception

    message = request._message(" failed in its error handler")  # pyright: ignore[reportPrivateUsage]
    log_exception(message, error)
    return _own(request, problem(request, InternalServerError()))


def compose(
    endpoint: Callable[[Request], Any],
    kind: Kind,
    middleware: tuple[Middleware | ByChain, ...],
    failures: Failures,
    pool: BlockingPool | None,
    alone: Callable[[], Any] | None = None,
) -> tuple[Callable[[Request], Any], Kind]:
    """Endpoint, error handlers, then middleware from the inside out.

    The chain stays synchronous until the first part that is not; from there on outwards it is a
    coroutine. ``alone`` is what ``endpoint`` calls, if that wants no arguments.
    """
    handler = endpoint
    has_async_errors = any(handlers.any_async for handlers in failures.errors)
    async_middleware = any(is_async_middleware(one) for one in middleware)
    if kind == "blocking" and (async_middleware or has_async_errors):
        assert pool is not None, "a blocking route has made freeze ask for a pool"
        endpoint, kind = pool.as_async(endpoint), "async"
    chain: Callable[[Request], Any]
    if kind == "async" or has_async_errors:
        chain, is_async = _guard_async(endpoint, failures, handler), True
    else:
        chain, is_async = _guard(endpoint, failures, handler, alone), False
    for one in reversed(middleware):
        if not is_async and is_async_middleware(one):
            chain, is_async = awaited(chain), True
        if isinstance(one, ByChain):
            chain = _around_by_chain(one, chain, failures, is_async=is_async)
        elif isinstance(one, Halves):
            around = _around_halves_async if is_async else _around_halves
            chain = around(one, chain, failures)
        elif is_async_middleware(one):
            chain = _around_async(one, chain, failures)
        elif is_async:
            chain = _around_pending(one, chain, failures)
        else:
            chain = _around(one, chain, failures)
    return chain, "async" if is_async else kind


def is_async_middleware(one: Middleware | ByChain) -> bool:
    """Whether a middleware needs a coroutine around it."""
    if isinstance(one, ByChain):
        return False
    return one.is_async if isinstance(one, Halves) else is_async(one)


CALLED_AS: Final = {
    "compiled": "def",
    "pooled": "blocking",
    "goroutine": "async",
    "pooled_goroutine": "async",
}
"""How compiled code is called, as other handlers are."""


def bound_to(
    middleware: tuple[Declared, ...],
    method: str,
    pattern: str | None,
    handler: Callable[..., Any] | None,
    kind: Kind = "def",
) -> tuple[Middleware | ByChain, ...]:
    """What each middleware is for one route; those that leave the route alone are left out."""
    bound: list[Middleware | ByChain] = []
    for one in middleware:
        if isinstance(one, OnRequests | OnConnections):
            # With a request it is like any middleware.
            here = cast("Middleware", one.function)
        else:
            how = CALLED_AS.get(kind, kind)
            here = one.bind_kind(how, method, pattern, handler) if isinstance(one, Halves) else one
        if here is not None:
            bound.append(cast("Middleware | ByChain", here))
    return tuple(bound)


def _own(request: Request, value: object) -> Response:
    """``value`` as a response of this request alone."""
    return request._own(value)  # pyright: ignore[reportPrivateUsage]


def _as_response(request: Request, value: Any, function: Callable[..., Any]) -> Response:
    """What ``function`` returned, as a response of the request."""
    if type(value) in (Response, str, bytes):
        return _own(request, value)
    if value is None:
        return _own(request, Response(b"", 204))
    if hasattr(value, "citius_response"):
        raise TypeError(
            f"{describe(function)} returned {type(value).__name__}, for which its route has to wait: make it "
            "`async def`"
        )
    refuse_status(value, function)
    return _own(request, value)


def _of_middleware(request: Request, value: Any, function: Callable[..., Any]) -> Response:
    """What a middleware returned, as a response; ``None`` is an error."""
    if type(value) is Response:
        return request._own(value)  # pyright: ignore[reportPrivateUsage]
    if value is None:
        raise TypeError(
            f"the middleware {describe(function)} returned nothing; a middleware ends with "
            "`return next(request)`, `return await next(request)` or another response"
        )
    return _as_response(request, value, function)


def _of_error_handler(value: Any, function: Callable[..., Any]) -> Any:
    """What an error handler returned, which may be anything but nothing."""
    if value is None:
        raise TypeError(
            f"the error handler {describe(function)} returned nothing; an error handler returns a "
            'response: Response("no such item", 404), or Response(b"", 204) for an empty one'
        )
    return value


def _guard(
    endpoint: Callable[[Request], Any],
    failures: Failures,
    function: Callable[..., Any],
    alone: Callable[[], Any] | None,
) -> Callable[[Request], Response]:
    def respond_with(request: Request, value: Any) -> Response:
        return _as_response(request, value, function)

    if FAST_PATHS:
        respond_to = failures.respond_to
        if alone is not None:
            return GuardedCall(alone, respond_with, respond_to, takes_request=False).respond
        return GuardedCall(endpoint, respond_with, respond_to).respond

    def guarded(request: Request) -> Response:
        try:
            return respond_with(request, endpoint(request))
        except Exception as error:
            return failures.respond(request, error)

    return guarded


def _guard_async(
    endpoint: Callable[[Request], Any], failures: Failures, function: Callable[..., Any]
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def guarded(request: Request) -> Response:
        try:
            value = endpoint(request)
            if hasattr(value, "__await__"):
                value = await value
            if type(value) is str or type(value) is Response:
                return request._own(value)  # pyright: ignore[reportPrivateUsage]
            if hasattr(value, "citius_response"):
                value = await value.citius_response(request)
            return _as_response(request, value, function)
        except Exception as error:
            return await failures.respond_async(request, error)

    return guarded


def _around(
    function: Callable[..., Any], inner: Callable[[Request], Response], failures: Failures
) -> Callable[[Request], Response]:
    def respond_with(request: Request, value: Any) -> Response:
        return _of_middleware(request, value, function)

    if FAST_PATHS:
        return GuardedCall(function, respond_with, failures.respond_to, next=inner).respond

    def wrapped(request: Request) -> Response:
        try:
            return respond_with(request, function(request, inner))
        except Exception as error:
            return failures.respond(request, error)

    return wrapped


def _around_async(
    function: Callable[..., Any],
    inner: Callable[[Request], Awaitable[Response]],
    failures: Failures,
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    async def wrapped(request: Request) -> Response:
        try:
            value = await function(request, inner)
            return _of_middleware(request, value, function)
        except Exception as error:
            return await failures.respond_async(request, error)

    return wrapped


def _around_by_chain(
    one: ByChain, inner: Callable[[Request], Any], failures: Failures, *, is_async: bool
) -> Callable[[Request], Any]:
    if is_async:
        return _around_async(one.coroutine_function, inner, failures)
    if one.make_chain is not None:
        return one.make_chain(inner, failures.respond)
    return _around(one.function, inner, failures)


def _around_halves(
    one: Halves, inner: Callable[[Request], Response], failures: Failures
) -> Callable[[Request], Response]:
    """A middleware in two halves around a chain without a coroutine."""
    before: Callable[..., Any] = one.before
    after: Callable[..., Any] = one.after
    cls = type(one)

    def wrapped(request: Request) -> Response:
        try:
            early = before(request)
            if early is not None:
                return _of_middleware(request, early, before)
            return _of_middleware(request, after(request, inner(request)), after)
        except Exception as error:
            return failures.respond(request, error)

    def only_before(request: Request) -> Response:
        try:
            early = before(request)
            return inner(request) if early is None else _of_middleware(request, early, before)
        except Exception as error:
            return failures.respond(request, error)

    def only_after(request: Request) -> Response:
        try:
            return _of_middleware(request, after(request, inner(request)), after)
        except Exception as error:
            return failures.respond(request, error)

    if cls.before is Halves.before:
        return only_after
    return only_before if cls.after is Halves.after else wrapped


def _around_halves_async(
    one: Halves, inner: Callable[[Request], Awaitable[Response]], failures: Failures
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """A middleware in two halves around a coroutine; each half may be a coroutine function."""
    before: Callable[..., Any] = one.before
    after: Callable[..., Any] = one.after
    is_awaited = is_async_middleware(one)

    async def wrapped(request: Request) -> Response:
        try:
            early = before(request)
            if is_awaited:
                early = await finish(early)
            if early is not None:
                return _of_middleware(request, early, before)
            response = after(request, await inner(request))
            if is_awaited:
                response = await finish(response)
            return _of_middleware(request, response, after)
        except Exception as error:
            return await failures.respond_async(request, error)

    return wrapped


def _around_pending(
    function: Callable[..., Any],
    inner: Callable[[Request], Coroutine[Any, Any, Response]],
    failures: Failures,
) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """A ``def`` around a coroutine: it gets something to hand on, not to look into."""

    def pending(request: Request) -> Pending:
        return Pending(inner(request), function)

    async def wrapped(request: Request) -> Response:
        try:
            value = function(request, pending)
            if type(value) is Pending:
                value = await value.coroutine
            elif hasattr(value, "__await__"):
                value = await value
            return _of_middleware(request, value, function)
        except Exception as error:
            return await failures.respond_async(request, error)

    return wrapped


class Pending:
    """The response of an ``async def`` handler before it is there."""

    __slots__ = ("_function", "coroutine")

    def __init__(
        self, coroutine: Coroutine[Any, Any, Response], function: Callable[..., Any]
    ) -> None:
        self.coroutine = coroutine
        self._function = function

    def __await__(self) -> Generator[Any, None, Response]:
        return self.coroutine.__await__()

    def __getattr__(self, name: str) -> NoReturn:
        self.coroutine.close()
        raise TypeError(
            f"the middleware {describe(self._function)} wants `{name}` of an answer that an "
            "`async def` handler has not made yet; write the middleware as `async def` and "
            "`await next(request)`"
        )


def awaited(function: Callable[..., Any]) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The function as a coroutine function."""

    async def call_awaited(*args: Any) -> Any:
        return await finish(function(*args))

    return call_awaited


async def finish(value: Any) -> Any:
    """Await what needs it."""
    return await value if hasattr(value, "__await__") else value


def log_ended(what: str, error: BaseException) -> None:
    """Log a hook that failed or was cancelled because it hangs; the hooks after it are still called."""
    from asyncio import CancelledError

    from citius.observability.logging import log_exception, warning

    if isinstance(error, CancelledError):
        warning(f"{what} did not end and was broken off")
    elif isinstance(error, Exception):
        log_exception(f"{what} failed", error)
    else:
        raise error
