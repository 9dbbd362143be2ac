"""What error handlers and middleware declare to return: records are sent as declared, or the start fails.

The annotation of a route's handler is held by results.py. That of an error handler is held here, once per
handler when the application is frozen; a middleware returns responses: one that declares records is refused.
Tests: ``tests/gateway/test_other_results.py``.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from citius._core import Request, Response
from citius.errors import ConfigError
from citius.web.declarations.annotations import without_response
from citius.web.declarations.checks import describe, resolving
from citius.web.declarations.generic_signatures import variables_of
from citius.web.declarations.type_kinds import (
    EndlessType,
    is_async,
    name_of,
    python_function,
    resolved,
    substituted,
)
from citius.web.middleware.base import Middleware, OnConnections, OnRequests
from citius.web.responses.declared.filterable import Unfilterable, check_filterable
from citius.web.responses.results import kept_body, type_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from citius.web.middleware.base import Declared
    from citius.web.routing.request_chain import ErrorHandlers


def hold_error_handlers(handlers: Iterable[ErrorHandlers]) -> None:
    """Have error handlers send the fields that they declare.

    Raises:
        ConfigError: The type does not say which fields are sent, or has a name that cannot be resolved.
    """
    for one in handlers:
        for known in (one.by_type, one.by_status):
            for key, handler in list(known.items()):
                known[key] = _held(handler)  # type: ignore[index]  # pyright: ignore[reportArgumentType]


def result_filter(function: Callable[..., Any], what: str) -> Callable[[Any], Any] | None:
    """What has results of a function be as it declares, in a ``Response`` too; ``None`` for nothing to do.

    Raises:
        ConfigError: The type does not say which fields are sent, or has a name that cannot be resolved.
    """
    is_model, model = _declared(function, what)
    if not is_model:
        return None
    keep = type_filter(model, function)

    def respond(value: Any) -> Any:
        if type(value) is Response:
            return kept_body(value, keep)
        return value if value is None else keep(value)

    return respond


def _held(handler: Callable[..., Any]) -> Callable[..., Any]:
    respond = result_filter(handler, "the error handler")
    if respond is None:
        return handler
    if is_async(handler):

        @functools.wraps(handler)
        async def call_async(request: Request, error: BaseException) -> Any:
            return respond(await handler(request, error))

        held: Any = call_async
    else:

        @functools.wraps(handler)
        def call(request: Request, error: BaseException) -> Any:
            return respond(handler(request, error))

        held = call
    held._citius_held = True
    return held


def check_middleware_results(middleware: Iterable[Declared]) -> None:
    """Refuse middleware that declares records: what it returns is sent as it is.

    Raises:
        ConfigError: One does.
    """
    for one in middleware:
        function = one.function if isinstance(one, OnRequests | OnConnections) else one
        steps = (
            (function.before, function.after, function.connect)
            if isinstance(function, Middleware)
            else (function,)
        )
        for step in steps:
            refuse_records(step, "the middleware")


def refuse_records(function: Callable[..., Any], what: str) -> None:
    """Refuse a function that declares records, and whose results are sent as they are.

    Raises:
        ConfigError: It does.
    """
    is_model, model = _declared(function, what)
    if is_model:
        raise ConfigError(
            f"{what} {describe(function)} is declared to return {name_of(model)}, of which all fields would "
            "be sent: return a Response"
        )


def refuse_records_of_hooks(*hooks: Callable[..., Any] | None) -> None:
    """Refuse hooks of ``forward`` that declare records; for hooks of requests, most of which return nothing.

    Raises:
        ConfigError: One does.
    """
    for hook in hooks:
        if hook is not None and getattr(python_function(hook), "__annotations__", {}).get("return"):
            refuse_records(hook, "the hook")


def _declared(function: Any, what: str) -> tuple[bool, Any]:
    """Whether a function declares records, and which."""
    if hasattr(function, "_citius_held"):
        return False, None
    try:
        annotation = inspect.signature(function).return_annotation
    except (TypeError, ValueError, NameError):
        return False, None  # some functions in C do not tell
    if annotation is inspect.Signature.empty:
        return False, None
    if isinstance(annotation, str):
        names = {"Response": Response, **getattr(python_function(function), "__globals__", {})}
        if annotation in names:  # `Response` under TYPE_CHECKING
            annotation = names[annotation]
    try:
        annotation = substituted(resolved(annotation, function), variables_of(function))
        is_model, model = without_response(annotation, is_explicit=False)
        check_filterable(model)
        return is_model, model
    except (Unfilterable, EndlessType) as error:
        raise ConfigError(
            f"{what} {describe(function)} is declared to return {name_of(annotation)}, which cannot be held: "
            f"{error}"
        ) from None
    except NameError as error:
        raise ConfigError(
            f"the return annotation of {what} {describe(function)} cannot be resolved: {error}; "
            f"{resolving(function)}"
        ) from None
