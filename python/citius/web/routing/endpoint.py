"""``Endpoint``: everything that is known of a route when the application is frozen, as one value.

Binding, the OpenAPI document, ``citius routes`` and the checks at the start are derived from it. Signatures
are read here, once per route. Tests: ``tests/gateway/test_endpoints.py``.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, cast

from citius.errors import ConfigError
from citius.records import record
from citius.web.binding.depends.dependencies import Dependency, Resolver, flatten
from citius.web.binding.signature import (
    Kind,
    Parameter,
    check_all,
    check_path_parameters,
    compiled_parameters,
    http_parameters,
    procedure_parameters,
    read_result,
)
from citius.web.declarations.annotations import is_encoded, without_response
from citius.web.declarations.checks import describe, resolving
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.type_kinds import (
    EndlessType,
    makes_generator,
    name_of,
    normal,
    resolved,
)
from citius.web.declarations.type_kinds import kind_of as type_kind_of
from citius.web.middleware.base import Middleware
from citius.web.responses.declared.filterable import Unfilterable, check_filterable
from citius.web.responses.declared.filters import ALL_FIELDS
from citius.web.routing.declared_routes import Operation
from citius.web.routing.request_chain import CALLED_AS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from citius.web.middleware.base import Declared
    from citius.web.routing.declared_routes import Route, SocketRoute
    from citius.web.routing.rpc.procedures import Procedure

Protocol = Literal["http", "websocket", "webtransport", "rpc", "mcp"]


@record(frozen=True, slots=True)
class Guard:
    """A security scheme that a request has to satisfy."""

    name: str
    scopes: tuple[str, ...]
    openapi: dict[str, Any]
    """Its Security Scheme Object."""


@record(frozen=True, slots=True, eq=False)
class Endpoint:
    """A route, a path of WebSockets or of sessions, or a procedure."""

    protocol: Protocol
    method: str
    """The HTTP method; empty for others."""
    pattern: str
    """The path with the prefixes of mounts, or the name of a procedure."""
    handler: Callable[..., Any]
    kind: Kind
    parameters: tuple[Parameter, ...] = ()
    extra: tuple[Dependency, ...] = ()
    """Dependencies whose values the handler does not take; they are called first."""
    result: Any = MISSING
    """The type of the response's body."""
    is_model: bool = False
    """Whether values are made to be of that type before they are sent."""
    is_lines: bool = False
    """Whether the type is an iterator of values, which are sent as lines of JSON."""
    stream: bool = False
    body_bytes_max: int | None = None
    operation: Operation = field(default_factory=Operation)
    middleware: tuple[Declared, ...] = ()
    """All around it, the outermost first."""
    deadline_s: float | None = None
    """How long a call of a procedure may take."""
    app: object = None
    """The application that declares it; ``None`` for procedures."""

    @property
    def guards(self) -> list[Guard]:
        """The security schemes of middleware and dependencies; those of one name have all their scopes."""
        schemes = [
            one.guard_of(self.pattern) for one in self.middleware if isinstance(one, Middleware)
        ]
        schemes += [one.call for one in self.dependencies]
        found: dict[str, Guard] = {}
        for scheme in schemes:
            openapi = getattr(scheme, "openapi", None)
            if isinstance(openapi, dict):
                name = str(getattr(scheme, "name", type(scheme).__name__))
                known = found[name].scopes if name in found else ()
                scopes = dict.fromkeys((*known, *getattr(scheme, "scopes", ())))
                found[name] = Guard(name, tuple(scopes), cast("dict[str, Any]", openapi))
        return list(found.values())

    @property
    def limits(self) -> list[str]:
        """What bounds its requests, in words."""
        found: list[str] = []
        if self.body_bytes_max is not None:
            found.append(f"body {self.body_bytes_max} bytes")
        if self.deadline_s is not None:
            found.append(f"{self.deadline_s:g} s")
        for one in self.middleware:
            if not isinstance(one, Middleware):
                continue
            how = CALLED_AS.get(self.kind, self.kind)
            limit = one.limit_of_kind(how, self.pattern, self.handler)
            if limit is not None:
                found.append(limit)
        return found

    @property
    def dependencies(self) -> list[Dependency]:
        """All dependencies, inner ones first."""
        taken = (p.dependency for p in self.parameters if p.dependency is not None)
        return list(flatten((*self.extra, *taken)))

    @property
    def inputs(self) -> list[Parameter]:
        """The parameters that a request brings, those of dependencies included."""
        of_dependencies = [p for one in self.dependencies for p in one.parameters]
        return [p for p in (*of_dependencies, *self.parameters) if p.dependency is None]

    @property
    def name(self) -> str:
        """What `url_for` calls it: the name of the route, or that of the handler."""
        return self.operation.name or getattr(self.handler, "__name__", self.pattern)

    @property
    def where(self) -> str:
        """The handler with its file and line."""
        return describe(self.handler)


@contextmanager
def refusing_recursion(function: object) -> Generator[None]:
    """Refuse a type that has no end, or contains itself by an alias where its reader does not know that.

    Raises:
        ConfigError: There is one.
    """
    try:
        yield
    except EndlessType as error:
        raise ConfigError(f"{describe(function)}: {error}") from None
    except RecursionError:
        raise ConfigError(
            f"{describe(function)} has a type that contains itself by an alias: write a class with "
            "fields, or Any"
        ) from None


def endpoint_of(route: Route, pattern: str, resolver: Resolver) -> Endpoint:
    """What is known of a route.

    Args:
        route: The route as declared.
        pattern: Its path with the prefixes of mounts.
        resolver: What makes the graph of its dependencies.

    Raises:
        ConfigError: The signature of the handler or of a dependency does not fit.
    """
    with refusing_recursion(route.handler):
        return _endpoint_of(route, pattern, resolver)


def _endpoint_of(route: Route, pattern: str, resolver: Resolver) -> Endpoint:
    handler = route.handler
    if route.compiled is not None:
        function = getattr(handler, "py_func", handler)
        is_python = route.compiled.native is True
        if is_python:
            check_path_parameters(function, route.pattern, otherwise="raw_path")
        parameters = compiled_parameters(function, pattern) if is_python else ()
        _, extra = resolver.resolve(function, (), route.dependencies, pattern)
        return Endpoint(
            "http", route.method, pattern, function, route.kind, parameters, extra,
            body_bytes_max=route.body_bytes_max, operation=route.operation,
        )  # fmt: skip
    parameters = http_parameters(handler, pattern, stream=route.stream)
    parameters, extra = resolver.resolve(handler, parameters, route.dependencies, pattern)
    result, is_model, is_lines = result_of(handler, route.operation)
    endpoint = Endpoint(
        "http", route.method, pattern, handler, route.kind, parameters, extra,
        result=result, is_model=is_model, is_lines=is_lines, stream=route.stream,
        body_bytes_max=route.body_bytes_max, operation=route.operation,
    )  # fmt: skip
    in_dependencies = {p.wire_name for p in endpoint.inputs if p.source == "path"}
    check_path_parameters(handler, route.pattern, elsewhere=in_dependencies)
    check_all(handler, tuple(endpoint.inputs), pattern, stream=route.stream)
    return endpoint


def result_of(handler: Callable[..., Any], operation: Operation) -> tuple[Any, bool, bool]:
    """The type of a handler's values, whether they are made to be of it, and whether they are lines of JSON.

    Raises:
        ConfigError: The type, or a name in it, is not known.
    """
    declared = operation.response
    result = read_result(handler) if declared is MISSING else declared
    try:
        if result is not MISSING:
            result = resolved(result, handler)
        is_model, result = without_response(result, is_explicit=declared is not MISSING)
        with suppress(RecursionError):  # an alias that contains itself
            result = result if result is MISSING else normal(result)
        models = [one for one in operation.responses.values() if not isinstance(one, str)]
        is_lines = result is not MISSING and is_stream_of_values(result, handler)
        for one in (result, *models):
            if one is not MISSING:
                check_filterable(one)
    except (Unfilterable, EndlessType) as error:
        raise ConfigError(
            f"the response of {describe(handler)} is declared as {name_of(result)}, which cannot be held: "
            f"{error}"
        ) from None
    except NameError as error:
        raise ConfigError(
            f"the declared response of {describe(handler)} has a name that cannot be resolved: {error}; "
            f"{resolving(handler)}"
        ) from None
    if operation.fields != ALL_FIELDS and not (is_model or is_lines or models):
        raise ConfigError(
            f"{describe(handler)} has exclude_none, exclude_unset, exclude_defaults or by_alias, and no type "
            "of a response that these hold for: annotate what it returns, or add response="
        )
    if is_model and not is_lines and makes_generator(handler):
        _refuse_generator(result, handler)
    return result, is_model, is_lines


def _refuse_generator(result: Any, handler: Callable[..., Any]) -> None:
    """Refuse a generator whose declared response is one value.

    Raises:
        ConfigError: It is.
    """
    if type_kind_of(result).kind in ("record", "tuple", "mapping", "plain"):
        name = name_of(result)
        raise ConfigError(
            f"{describe(handler)} is a generator, whose response is a stream, and is declared as {name}: "
            f"declare Iterator[{name}], or return the value"
        )


def is_stream_of_values(annotation: Any, handler: Callable[..., Any]) -> bool:
    """Whether values are sent one by one, encoded: an iterator of anything but text and bytes."""
    found = type_kind_of(annotation)
    if found.kind == "stream" or (found.kind == "array" and makes_generator(handler)):
        return is_encoded(found.parts[0])
    return False


def endpoint_of_socket(socket: SocketRoute, pattern: str, resolver: Resolver) -> Endpoint:
    """What is known of a path of WebSockets, or of WebTransport sessions.

    Raises:
        ConfigError: A parameter has no source, or a thread would have to wait for a coroutine.
    """
    from citius.web.realtime.websockets import parameter_readers, takes_serial

    handler = socket.handler
    serial = takes_serial(socket.kind, handler)
    read_handler, read = parameter_readers(socket.protocol, serial=serial)
    resolver = resolver.reading(read)
    with refusing_recursion(handler):
        own = read_handler(handler, pattern)
        parameters, extra = resolver.resolve(handler, own, socket.dependencies, pattern)
    return without_awaits_in_threads(
        Endpoint(socket.protocol, "", pattern, handler, socket.kind, parameters, extra)
    )


def endpoint_of_procedure(one: Procedure, resolver: Resolver) -> Endpoint:
    """What is known of a procedure.

    Raises:
        ConfigError: A call cannot bring a parameter, or a thread would have to wait for a coroutine.
    """
    handler = one.handler
    resolver = resolver.reading(lambda call, _: procedure_parameters(call))
    with refusing_recursion(handler):
        own = procedure_parameters(handler)
    try:
        parameters, extra = resolver.resolve(handler, own, one.dependencies, "")
    except ConfigError as error:
        raise ConfigError(
            f"the procedure {one.name} of {describe(handler)} has a dependency that no call can satisfy: "
            f"{error}. Those of an application hold for its procedures too; put what routes alone need on a "
            "Router"
        ) from None
    with refusing_recursion(handler):
        result, is_model, is_lines = result_of(handler, Operation())
    if is_lines:
        raise ConfigError(
            f"the procedure {one.name} of {describe(handler)} is declared to return {name_of(result)}, and a "
            "call has one result: return a list"
        )
    return without_awaits_in_threads(
        Endpoint(
            "rpc", "", one.name, handler, one.kind, parameters, extra,
            result=result, is_model=is_model, deadline_s=one.deadline_s,
        )
    )  # fmt: skip


def without_awaits_in_threads(endpoint: Endpoint) -> Endpoint:
    """Refuse one whose handler runs in a thread and has a dependency that is awaited.

    Raises:
        ConfigError: It has.
    """
    awaited = next((one for one in endpoint.dependencies if one.is_async), None)
    if endpoint.kind == "blocking" and awaited is not None:
        raise ConfigError(
            f"{endpoint.where} runs in a thread and takes {describe(awaited.call)}, which is `async def`: "
            "make both `def`, or both `async def`"
        )
    return endpoint
