"""Routes as an application declares them: a path, a method, a handler, and options.

Values only: signatures are read, and everything is decided, when the application is frozen (endpoint.py).
Tests: ``tests/gateway/test_app.py``, ``tests/gateway/test_endpoints.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, cast

from citius.errors import ConfigError
from citius.records import record
from citius.unknown_options import caller
from citius.web.binding.headers import MutableHeaders, is_of_connection
from citius.web.binding.signature import Kind, kind_of
from citius.web.declarations.checks import (
    as_dependencies,
    check_responses,
    check_returns_no_status,
    describe,
)
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.type_kinds import makes_generator
from citius.web.responses.declared.filters import ALL_FIELDS, FieldOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from citius.web.binding.forms import FormLimits
    from citius.web.declarations.parameters.sources import Depends
    from citius.web.execution.compiled_handlers import Compiled
    from citius.web.middleware.base import Declared
    from citius.web.routing.request_chain import ErrorHandlers
    from citius.web.routing.router import Router


class RouteOptions(TypedDict, total=False):
    """What a route's decorator takes besides the path."""

    blocking: bool
    """Call the handler (a ``def``) in a thread, because it waits for something."""
    executor: str
    """Call the handler (a ``def``) on the executor of this name, which ``App.executor`` has added."""
    stream: bool
    """Call the handler when the header section of the request is complete; it reads the body itself, with
    ``request.stream()`` or ``await request.read()``."""
    body_bytes_max: int | None
    """Bytes a body may have, whatever ``--body-bytes-max`` says; the response to more is 413."""
    form: FormLimits | None
    """What a form in the body may have; the body is parsed while it comes, also if the handler has no
    parameters of forms and calls ``request.form()``."""
    on_disconnect: Literal["cancel", "continue"]
    """What becomes of an ``async def`` handler that waits when its client disconnects; it is cancelled unless
    this is ``"continue"``."""
    compress: str | bool
    """``False`` sends responses as they are; a text such as ``"br=9, gzip=6"`` has ``--compress`` work at
    these levels."""
    compiled: object
    """``True`` compiles the decorated function with numba. Native code (a capsule, a ctypes function, one of
    ``load_handlers()``, an address) makes the response in its place; then there need be no function. See
    docs/guides/compiled-handlers.md."""
    pool: bool
    """Call compiled code in a thread without the GIL, because it takes long."""
    serial: bool
    """Call the handler where it may wait while its thread serves others: compiled code in a goroutine, a
    ``def`` in a greenlet (see ``citius.serial``)."""
    dependencies: Sequence[Depends]
    """Dependencies whose values the handler does not take."""
    response: Any
    """The type of the response's body; the return annotation without it."""
    status_code: int
    """The status of a response that the handler does not make itself."""
    headers: Mapping[str, str]
    """Fields of such a response."""
    content_type: str | None
    """The media type of such a response, or of what compiled code writes."""
    responses: Mapping[int, Any]
    """Types of other responses by their status; a text instead of a type is a description."""
    exclude_none: bool
    """Whether fields of a declared response that are ``None`` are left out."""
    exclude_defaults: bool
    """Whether its fields that have their default are left out."""
    exclude_unset: bool
    """Whether fields that were not set are left out; for models of pydantic, which know it."""
    by_alias: bool
    """``False`` sends the names of fields in Python in place of their aliases."""
    name: str | None
    """What ``url_for`` calls the route; the handler's name without it."""
    summary: str | None
    """A line for the documentation; made of the handler's name without it."""
    description: str | None
    """More for the documentation, in Markdown; the handler's docstring without it."""
    tags: Sequence[str]
    """Groups of the documentation that the route belongs to."""
    deprecated: bool
    """Whether clients should stop using the route."""
    operation_id: str | None
    """What generated clients call the operation; made of method and path without it."""
    include_in_schema: bool
    """Whether the documentation shows the route."""
    tool: bool | str
    """Expose the route as a tool of the application's MCP servers, called like the handler; a text is the
    tool's name."""
    callbacks: Mapping[str, Mapping[str, object]]
    """Requests of the application to its client: Callback Objects (OpenAPI 3.1, §4.8.18) by name."""


@record(frozen=True, slots=True)
class Operation:
    """What is known of a route besides how its handler is called."""

    name: str | None = None
    summary: str | None = None
    description: str | None = None
    tags: tuple[str, ...] = ()
    deprecated: bool = False
    operation_id: str | None = None
    include_in_schema: bool = True
    callbacks: Mapping[str, Mapping[str, object]] = field(
        default_factory=dict[str, "Mapping[str, object]"]
    )
    tool: bool | str = False
    is_procedure: bool = False
    """Whether its calls are counted by the codes of remote procedures."""
    response: Any = MISSING
    responses: Mapping[int, Any] = field(default_factory=dict[int, Any])
    status_code: int | None = None
    headers: Mapping[str, str] | None = None
    content_type: str | None = None
    fields: FieldOptions = ALL_FIELDS

    @property
    def has_head(self) -> bool:
        """Whether it says status, fields or media type of its responses."""
        return (self.status_code, self.headers, self.content_type) != (None, None, None)


@record(frozen=True, slots=True)
class SocketRoute:
    """A path of WebSockets, or of WebTransport sessions."""

    pattern: str
    handler: Callable[..., Any]
    kind: Literal["async", "blocking"]
    dependencies: tuple[Depends, ...] = ()
    protocol: Literal["websocket", "webtransport"] = "websocket"
    middleware: tuple[Declared, ...] = ()
    """Middleware of the routers that it is in, outer ones first."""
    errors: tuple[ErrorHandlers, ...] = ()
    """Error handlers of these routers, inner ones first."""

    def __post_init__(self) -> None:
        if makes_generator(self.handler):
            raise ConfigError(
                f"{describe(self.handler)} talks to clients at {self.pattern} and has `yield`, which sends "
                "nothing; write `await ws.send(…)`"
            )


@record(frozen=True, slots=True)
class Route:
    """One method of one path."""

    method: str
    pattern: str
    handler: Callable[..., Any]
    kind: Kind
    stream: bool = False
    body_bytes_max: int | None = None
    form: FormLimits | None = None
    levels: list[tuple[str, int]] | None = None
    """At which levels responses are compressed; empty: not at all, ``None``: at the server's."""
    compiled: Compiled | None = None
    """The native code that is called in place of ``handler``, or is made of it."""
    dependencies: tuple[Depends, ...] = ()
    errors: tuple[ErrorHandlers, ...] = ()
    """Error handlers of the routers that it is in, inner ones first."""
    middleware: tuple[Declared, ...] = ()
    """Middleware of these routers, outer ones first."""
    forwards: bool = False
    """Whether the handler passes requests on to other servers."""
    continues: bool = False
    """Whether a handler that waits is not cancelled when its client disconnects."""
    operation: Operation = field(default_factory=Operation)

    def __post_init__(self) -> None:
        most = self.body_bytes_max
        if most is not None and most < 0:
            raise ConfigError(
                f"the route {self.pattern}: expected body_bytes_max to be a number of bytes, got {most}"
            )
        check_responses(self.operation.responses, self.pattern, self.handler)
        status = self.operation.status_code
        if status is not None and not 200 <= status <= 599:
            raise ConfigError(
                f"the route {self.pattern}: expected status_code to be within 200 to 599, got {status}"
            )


def check_options(pattern: str, options: RouteOptions, *, is_compiled: bool) -> None:
    """Check what needs no handler.

    Raises:
        ConfigError: An option is wrong whatever it is that it decorates.
    """
    for name, (types, what) in _VALUES.items():
        if name in options and not isinstance(value := options[name], types):
            raise ConfigError(f"the route {pattern} ({caller()}): {name}= is {what}, got {value!r}")
    check_tags(f"the route {pattern}", options.get("tags", ()))
    _check_head(pattern, options)
    levels_of(options.get("compress", True))
    if options.get("pool") and not is_compiled:
        raise ConfigError(f"the route {pattern} has pool=True, but is not compiled")


def _check_head(pattern: str, options: RouteOptions) -> None:
    """Refuse fields of responses that cannot be sent; each request would be a 500.

    Raises:
        ConfigError: One cannot be.
    """
    content_type, headers = options.get("content_type"), options.get("headers") or {}
    kind, _, rest = (content_type or "any/any").partition("/")
    if not kind or not rest:
        raise ConfigError(
            f"the route {pattern} ({caller()}): content_type= is a media type such as text/html, got "
            f"{content_type!r}"
        )
    fields = MutableHeaders([])
    given: dict[object, object] = {
        **headers,
        **({"content-type": content_type} if content_type else {}),
    }
    for name, value in given.items():
        if str(name).lower() == "content-length" or is_of_connection(str(name), str(value)):
            raise ConfigError(
                f"the route {pattern} ({caller()}): headers= has {name}, which the server sets"
            )
        try:
            if not (isinstance(name, str) and isinstance(value, str)):
                raise ValueError(f"names and values are texts, got {name!r}: {value!r}")
            fields[name] = value
        except ValueError as error:
            raise ConfigError(f"the route {pattern} ({caller()}): headers=: {error}") from None


_TEXT: Final = (str, NoneType), "a text"
_FLAG: Final = bool, "True or False"
_VALUES: Final[Mapping[Any, tuple[Any, str]]] = {
    **dict.fromkeys(("name", "summary", "description", "operation_id", "content_type"), _TEXT),
    **dict.fromkeys(
        (
            "blocking", "stream", "pool", "serial", "deprecated", "include_in_schema", "exclude_none",
            "exclude_defaults", "exclude_unset", "by_alias",
        ),
        _FLAG,
    ),
    "executor": ((str, NoneType), "the name of an executor"),
    "body_bytes_max": ((int, NoneType), "a number of bytes"),
    "status_code": ((int, NoneType), "a number"),
    "headers": ((Mapping, NoneType), 'a mapping, headers={"name": "value"}'),
    "callbacks": (Mapping, "a mapping"),
    "compress": ((str, bool), 'True, False or a text such as "br=9"'),
    "tool": ((str, bool), "True, False or the name of the tool"),
}  # fmt: skip
"""Which values options have; what others there are is checked where it is read."""


def check_tags(what: str, tags: object) -> None:
    """Refuse a text in place of a list of tags; each of its letters would be one.

    Raises:
        ConfigError: It is one, or no list of texts.
    """
    is_list = isinstance(tags, Iterable) and not isinstance(tags, (str, bytes))
    if not is_list or not all(isinstance(one, str) for one in cast("Iterable[object]", tags)):
        raise ConfigError(f"{what} ({caller()}): tags= is a list of texts, got {tags!r}")


def declare(pattern: str, handler: Callable[..., Any], options: RouteOptions) -> Route:
    """The route of a handler, without its method.

    Raises:
        ConfigError: An option contradicts the handler or another option.
    """
    executor = options.get("executor")
    if executor is not None:
        handler = _elsewhere(pattern, handler, executor, options)
    elif options.get("serial"):
        blocking = options.get("blocking", False)
        handler = carried_handler(f"the route {pattern}", handler, blocking=blocking)
    kind = kind_of(handler, blocking=options.get("blocking", False))
    check_returns_no_status(handler)
    if options.get("form") is not None and options.get("stream"):
        raise ConfigError(
            f"the route {pattern} has form= and stream=True: a form is parsed while it comes; drop "
            "stream=True"
        )
    return Route(
        "", pattern, handler, kind,
        stream=options.get("stream", False),
        body_bytes_max=options.get("body_bytes_max"),
        form=options.get("form"),
        continues=_continues(pattern, options),
        levels=levels_of(options.get("compress", True)),
        dependencies=as_dependencies(f"the route {pattern}", options.get("dependencies", ())),
        operation=operation_of(options),
    )  # fmt: skip


def _elsewhere(
    pattern: str, handler: Callable[..., Any], executor: str, options: RouteOptions
) -> Callable[..., Any]:
    from citius.web.execution.executors import OnExecutor

    if options.get("blocking") or options.get("stream"):
        raise ConfigError(
            f"the route {pattern} has executor={executor!r}: its body runs elsewhere, with values; "
            "drop blocking and stream"
        )
    if options.get("serial"):
        raise ConfigError(
            f"the route {pattern} has executor={executor!r} and serial=True: its body runs elsewhere, where "
            "it may block; drop serial"
        )
    return OnExecutor(executor, handler, pattern).route_handler()


def carried_handler(
    what: str, handler: Callable[..., Any], *, blocking: bool = False
) -> Callable[..., Any]:
    """The handler of a route, a WebSocket or a procedure with ``serial=True``; ``what`` names it.

    Raises:
        ConfigError: It cannot be called in a greenlet.
    """
    from citius import serial
    from citius.web.responses.streaming import stepped

    if kind_of(handler, blocking=False) == "async":
        raise ConfigError(
            f"{what} has serial=True, and {describe(handler)} is `async def`, which awaits; drop serial"
        )
    if blocking:
        raise ConfigError(
            f"{what} has blocking=True and serial=True: its handler waits in a thread or in a greenlet; "
            "drop one of them"
        )
    serial.check(what)
    return serial.carried(handler, stepped)


def _continues(pattern: str, options: RouteOptions) -> bool:
    what = options.get("on_disconnect", "cancel")
    if what not in ("cancel", "continue"):
        raise ConfigError(
            f"the route {pattern}: on_disconnect is 'cancel' or 'continue', got {what!r}"
        )
    return what == "continue"


_OF_PYTHON: Final[dict[str, object]] = {
    "executor": None, "form": None, "on_disconnect": "cancel", "response": MISSING, "exclude_none": False,
    "exclude_unset": False, "exclude_defaults": False, "by_alias": True,
}  # fmt: skip
"""Options that hold for handlers in Python alone, with what they are without being given."""


def declare_compiled(pattern: str, options: RouteOptions) -> Route:
    """The route of native code, without its method; its handler is a function if that is compiled.

    Raises:
        ConfigError: An option does not hold for native code.
    """
    from citius.web.execution.compiled_handlers import Compiled, no_function

    if options.get("blocking"):
        raise ConfigError(
            f"the route {pattern} is compiled: its handler blocks no thread; drop blocking, use pool=True if "
            "it takes long, and serial=True if it waits"
        )
    if options.get("stream") and not options.get("serial"):
        raise ConfigError(
            f"the route {pattern} is compiled: its handler gets the whole body; drop stream, or add "
            "serial=True for a handler that waits for the pieces of the body"
        )
    for name, usual in _OF_PYTHON.items():
        if options.get(name, usual) != usual:
            raise ConfigError(
                f"the route {pattern} is compiled: {name}= is for Python handlers and would not hold; drop it"
            )
    if options.get("status_code") or options.get("headers"):
        raise ConfigError(
            f"the route {pattern} is compiled: native code sets status and header fields itself"
        )
    made = Compiled(
        options.get("compiled"),
        content_type=options.get("content_type"),
        pool=options.get("pool", False),
        serial=options.get("serial", False),
    )
    return Route(
        "", pattern, no_function, made.kind,
        stream=options.get("stream", False),
        body_bytes_max=options.get("body_bytes_max"),
        levels=levels_of(options.get("compress", True)),
        compiled=made,
        dependencies=as_dependencies(f"the route {pattern}", options.get("dependencies", ())),
        operation=operation_of(options),
    )  # fmt: skip


def operation_of(options: RouteOptions) -> Operation:
    """The options that are no matter of how a handler is called."""
    return Operation(
        name=options.get("name"),
        summary=options.get("summary"),
        description=options.get("description"),
        tags=tuple(options.get("tags", ())),
        deprecated=options.get("deprecated", False),
        operation_id=options.get("operation_id"),
        include_in_schema=options.get("include_in_schema", True),
        callbacks=options.get("callbacks", {}),
        tool=options.get("tool", False),
        response=options.get("response", MISSING),
        responses=options.get("responses", {}),
        status_code=options.get("status_code"),
        headers=options.get("headers"),
        content_type=options.get("content_type"),
        fields=FieldOptions(
            exclude_none=options.get("exclude_none", False),
            exclude_defaults=options.get("exclude_defaults", False),
            exclude_unset=options.get("exclude_unset", False),
            by_alias=options.get("by_alias", True),
        ),
    )


def with_head(routes: Iterable[Route]) -> list[Route]:
    """The routes, and one for HEAD for each of GET that has none."""
    routes = list(routes)
    heads = {route.pattern for route in routes if route.method == "HEAD"}
    return routes + [
        replace(route, method="HEAD")
        for route in routes
        if route.method == "GET" and route.pattern not in heads
    ]


def levels_of(compress: str | bool) -> list[tuple[str, int]] | None:
    """What ``compress=`` of a route says, as ``Route.levels`` has it.

    Raises:
        ConfigError: There is no such coding or level.
    """
    if isinstance(compress, bool):
        return None if compress else []
    from citius.settings.texts import parse_coding

    parsed = [parse_coding(text.strip()) for text in compress.split(",")]
    levels = [(name, level) for name, level in parsed if level is not None]
    if len(levels) < len(parsed):
        raise ConfigError(
            f"compress: expected a level for each coding, as in br=9, got {compress!r}"
        )
    return levels


@record(slots=True)
class Included:
    """A router, and what it and those around it give to its routes."""

    router: Router
    prefix: str
    tags: tuple[str, ...]
    dependencies: tuple[Depends, ...]
    errors: tuple[ErrorHandlers, ...]
    """Of the routers below the outermost one, inner ones first."""
    middleware: tuple[Declared, ...]
    """Of the same, outer ones first."""

    def give_route(self, route: Route) -> Route:
        """The route with all that is shared."""
        return replace(
            route,
            pattern=joined(self.prefix, route.pattern),
            dependencies=(*self.dependencies, *route.dependencies),
            operation=replace(route.operation, tags=(*self.tags, *route.operation.tags)),
            errors=self.errors,
            middleware=(*self.middleware, *route.middleware),
        )

    def give_socket(self, socket: SocketRoute) -> SocketRoute:
        """The path of WebSockets or sessions with all that is shared."""
        return replace(
            socket,
            pattern=joined(self.prefix, socket.pattern),
            dependencies=(*self.dependencies, *socket.dependencies),
            errors=self.errors,
            middleware=self.middleware,
        )


def shape_of(pattern: str) -> str:
    """A pattern without the names of its parameters: two of one shape have the same paths."""
    return re.sub(r"\{[^{}:]+", "{", pattern)


def joined(prefix: str, pattern: str) -> str:
    """A path below a prefix, whose own ``/`` is the prefix itself."""
    return prefix if prefix and pattern == "/" else prefix + pattern
