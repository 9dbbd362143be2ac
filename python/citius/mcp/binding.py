"""Binding: a function of an application in, what a request calls out, by the endpoint model of routes.

Parameters of a call take their values from its arguments; ``Annotated[str, Header()]``, ``Cookie()``, the
``Request`` and dependencies from the HTTP request that has brought it; a ``Context`` is the call itself. Done
once per function, when the application is frozen. Tests: ``tests/mcp/test_tools.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec

from citius.errors import ConfigError, RpcError
from citius.mcp.content import has_content
from citius.mcp.context import Context
from citius.web.binding.bind import Wrapper
from citius.web.binding.depends.dependencies import flatten
from citius.web.binding.readers import value_reader
from citius.web.binding.signature import (
    check_readable,
    kind_of,
    procedure_parameters,
    read_result,
)
from citius.web.declarations.annotations import copier_of
from citius.web.declarations.checks import describe, resolving
from citius.web.declarations.codecs import decode
from citius.web.declarations.fillable import check_fillable
from citius.web.declarations.finite import checked
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.pydantic_types import read_foreign
from citius.web.declarations.type_kinds import has_record, makes_generator, name_of, resolved
from citius.web.declarations.type_kinds import kind_of as type_kind_of
from citius.web.routing.declared_routes import Operation
from citius.web.routing.endpoint import (
    Endpoint,
    refusing_recursion,
    result_of,
    without_awaits_in_threads,
)
from citius.web.routing.rpc.procedures import call_parameters, misfit_of, parameters_struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from citius.web.binding.depends.dependencies import Dependency, Resolver
    from citius.web.binding.signature import Parameter, PythonKind, Source
    from citius.web.declarations.parameters.sources import Depends
    from citius.web.execution.thread_pool import BlockingPool


@dataclass(frozen=True, slots=True)
class Function:
    """A function as it was declared."""

    what: str
    """What messages call it: ``the tool add``."""
    call: Callable[..., Any]
    kind: PythonKind
    dependencies: tuple[Depends, ...] = ()


def function(
    what: str, call: Callable[..., Any], *, blocking: bool, dependencies: tuple[Depends, ...]
) -> Function:
    """Describe a function.

    Raises:
        ConfigError: It cannot be called as asked.
    """
    if not callable(call):
        raise ConfigError(f"{what}: expected a function, got {call!r}")
    return Function(what, call, kind_of(call, blocking=blocking), dependencies)


def endpoint_of(one: Function, name: str, resolver: Resolver) -> Endpoint:
    """What is known of a function.

    Raises:
        ConfigError: A call cannot bring a parameter, or a thread would have to wait for a coroutine.
    """

    def read(call: Callable[..., Any], _: str = "") -> tuple[Parameter, ...]:
        found = procedure_parameters(call, partial(_elsewhere, call))
        for p in found:
            if p.is_variable:
                raise ConfigError(f"{describe(call)} takes *{p.name}: name its parameters")
        return found

    with refusing_recursion(one.call):
        own = read(one.call)
        parameters, extra = resolver.reading(read).resolve(one.call, own, one.dependencies, "")
    annotation = read_result(one.call)
    if annotation is not MISSING:
        annotation = _resolved(one, annotation)
    if _is_iterated(annotation, one.call):
        raise ConfigError(
            f"{one.what} of {describe(one.call)} returns an iterator, and a result is one value; return a "
            "list, and report progress by a Context"
        )
    operation = Operation(response=annotation)
    with refusing_recursion(one.call):
        if has_content(annotation):
            _refuse_records_beside_content(one, annotation)
            operation = Operation()
    result, is_model = MISSING, False
    if operation.response is not MISSING:
        with refusing_recursion(one.call):
            result, is_model, _ = result_of(one.call, operation)
    endpoint = Endpoint(
        "mcp", "", name, one.call, one.kind, parameters, extra,
        result=result, is_model=is_model, operation=operation,
    )  # fmt: skip
    for p in endpoint.inputs:
        if p.source == "context" and one.kind != "async":
            raise ConfigError(
                f"{one.what} of {describe(one.call)} takes a Context, whose methods are awaited: make it "
                "`async def`, or take the citius.Request"
            )
    return without_awaits_in_threads(endpoint)


def _refuse_records_beside_content(one: Function, annotation: Any) -> None:
    """Refuse a result that is content or an object with fields, of which all would be sent.

    Raises:
        ConfigError: It is.
    """
    found = type_kind_of(annotation)
    for part in found.parts if found.kind == "union" else ():
        if not has_content(part) and has_record(part):
            raise ConfigError(
                f"{one.what} of {describe(one.call)} returns {name_of(part)} or content: declare one of "
                "them; ToolResult(structured=…) has both"
            )


def _is_iterated(annotation: Any, call: Callable[..., Any]) -> bool:
    return makes_generator(call) or (
        annotation is not MISSING and type_kind_of(annotation).kind == "stream"
    )


def _resolved(one: Function, annotation: Any) -> Any:
    try:
        return resolved(annotation, one.call)
    except NameError as error:
        raise ConfigError(
            f"the result of {describe(one.call)} has a name that cannot be resolved: {error}; "
            f"{resolving(one.call)}"
        ) from None


def _elsewhere(call: Callable[..., Any], p: Parameter) -> Source | None:
    """The source of a parameter that is none of the call."""
    if p.annotation is Context:
        return "context"
    if p.is_request:
        return "request"
    if p.marker is not None and p.marker.source in ("header", "cookie"):
        where = f"the parameter {p.name} of {describe(call)}"
        check_fillable(p.annotation, p.marker.source, where)
        return p.marker.source
    if p.marker is not None and p.marker.source != "body":
        raise ConfigError(
            f"the parameter {p.name} of {describe(call)} is {p.marker!r}, and a call has arguments, header "
            "fields and cookies: leave the marker out, or write Body()"
        )
    return None


Run = "Callable[[Any, Any, Any], Any]"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a request calls with the HTTP request, the context and the arguments."""

    run: Callable[[Any, Any, Any], Any]
    is_async: bool
    takes_context: bool


def bind_tool(
    endpoint: Endpoint,
    parameters: tuple[Parameter, ...],
    respond: Callable[[Any], Any],
    pool: BlockingPool | None,
    *,
    in_pool: bool,
) -> Bound:
    """The function of a tool, whose arguments are JSON.

    Raises:
        ConfigError: msgspec cannot check its parameters.
    """
    struct = parameters_struct(parameters, keywords=True)
    try:
        read = msgspec.json.Decoder(struct, dec_hook=read_foreign).decode
        first = checked(read, struct, floats=False)
    except TypeError as error:
        raise ConfigError(
            f"msgspec cannot check the parameters of {endpoint.where}: {error}"
        ) from None
    misfit = misfit_of("json", parameters)
    required = any(p.is_required for p in parameters)

    def again(params: bytes, error: Exception) -> Any:
        sent = bytes(params).lstrip()
        if sent == b"null":  # as some clients write that there are none
            return again(b"{}", error) if required else first(b"{}")
        if sent[:1] != b"{":
            raise no_object()
        # JSON Schema takes 5.0 for an integer, as bodies of routes do.
        try:
            return decode("json", struct, params, error)
        except Exception:
            raise misfit(error, params) from None

    opening = [
        "try:",
        "    values = decode(params)",
        "except Exception as error:",
        "    values = again(params, error)",
    ]
    names = {"decode": first, "again": again}
    return _bound(endpoint, opening, names, respond, pool, in_pool=in_pool)


def no_object() -> RpcError:
    """What a client is told whose arguments are no object."""
    errors = [{"in": "params", "pointer": "#", "detail": "expected an object"}]
    text = "the arguments do not match: #: expected an object"
    return RpcError(text, type="InvalidParams", data={"errors": errors})


def bind_texts(
    endpoint: Endpoint,
    parameters: tuple[Parameter, ...],
    respond: Callable[[Any], Any],
    pool: BlockingPool | None,
    *,
    in_pool: bool,
) -> Bound:
    """The function of a resource or a prompt, whose arguments are texts by their names."""
    for p in parameters:
        where = f"the parameter {p.name} of {endpoint.where}"
        check_fillable(p.annotation, "query", where)
        check_readable(p.annotation, where)
    readers = [(p.name, p.wire_name, _reader(p), _default(p)) for p in parameters]
    known = {p.wire_name for p in parameters}

    def read(texts: Mapping[str, str]) -> SimpleNamespace:
        mistakes: list[dict[str, str]] = []
        values: dict[str, Any] = {}
        for name, wire_name, reader, default in readers:
            text = texts.get(wire_name)
            if text is not None:
                values[name] = reader(text, mistakes)
            elif default is None:
                mistakes.append(_mistake(wire_name, "missing"))
            else:
                values[name] = default()
        mistakes += [_mistake(one, "unknown parameter") for one in texts.keys() - known]
        if mistakes:
            text = f"the arguments do not match: {mistakes[0]['pointer']}: {mistakes[0]['detail']}"
            raise RpcError(text, type="InvalidParams", data={"errors": mistakes})
        return SimpleNamespace(**values)

    return _bound(
        endpoint, ["values = read(params)"], {"read": read}, respond, pool, in_pool=in_pool
    )


@dataclass(frozen=True, slots=True)
class Guards:
    """What the dependencies of a resource or a prompt decide where its function is not called."""

    with_arguments: Bound | None = None
    """Calls all of them, with the arguments; ``None`` if there are none."""
    without_arguments: Bound | None = None
    """Calls those that take no argument."""
    needs_arguments: bool = False
    """Whether one of those that the function does not take needs arguments."""


def bind_guards(
    endpoint: Endpoint,
    parameters: tuple[Parameter, ...],
    pool: BlockingPool | None,
    *,
    in_pool: bool,
) -> Guards:
    """The dependencies of a function, to be called without it: for subscriptions and completions."""
    taken = tuple(p.dependency for p in endpoint.parameters if p.dependency is not None)
    top = (*endpoint.extra, *taken)
    if not top:
        return Guards()
    handler = _do_nothing_async if endpoint.kind == "async" else _do_nothing
    bare = replace(
        endpoint, handler=handler, parameters=(), extra=top, result=MISSING, is_model=False
    )

    def is_free(one: Dependency) -> bool:
        inputs = [p.source for each in flatten((one,)) for p in each.parameters]
        return "call" not in inputs and "context" not in inputs

    free = tuple(filter(is_free, top))
    return Guards(
        bind_texts(bare, parameters, _as_it_is, pool, in_pool=in_pool),
        bind_texts(replace(bare, extra=free), (), _as_it_is, pool, in_pool=in_pool)
        if free
        else None,
        not all(map(is_free, endpoint.extra)),
    )


def _do_nothing() -> None:
    pass


async def _do_nothing_async() -> None:
    pass


def _as_it_is(value: Any) -> Any:
    return value


def _reader(p: Parameter) -> Callable[[Any, list[dict[str, str]]], Any]:
    if p.annotation in (MISSING, str, Any):
        return lambda text, mistakes: text
    return value_reader(p)


def _default(p: Parameter) -> Callable[[], Any] | None:
    if p.is_required:
        return None
    return copier_of(p.default) or (lambda: p.default)


def _mistake(name: str, detail: str) -> dict[str, str]:
    from citius.web.declarations.validation_errors import mistake

    return mistake("params", (name,), detail)


def _bound(
    endpoint: Endpoint,
    opening: list[str],
    names: dict[str, Any],
    respond: Callable[[Any], Any],
    pool: BlockingPool | None,
    *,
    in_pool: bool,
) -> Bound:
    wrapper = Wrapper({}, first="request, context, params", opening=opening, names=names)
    made = wrapper.bind(endpoint, respond, pool)
    takes_context = any(p.source == "context" for p in endpoint.inputs)
    run = made.call
    if made.kind == "blocking" or (in_pool and made.kind == "def"):
        assert pool is not None, "a function that blocks has made freeze ask for a pool"
        return Bound(_in_thread(run, pool), is_async=True, takes_context=takes_context)
    return Bound(run, made.kind == "async", takes_context)


def _in_thread(
    run: Callable[[Any, Any, Any], Any], pool: BlockingPool
) -> Callable[[Any, Any, Any], Any]:
    def in_thread(request: Any, context: Any, params: Any) -> Any:
        return pool.as_async(lambda request: run(request, context, params))(request)

    return in_thread


__all__ = [
    "Bound",
    "Function",
    "Guards",
    "bind_guards",
    "bind_texts",
    "bind_tool",
    "call_parameters",
    "endpoint_of",
    "function",
]
