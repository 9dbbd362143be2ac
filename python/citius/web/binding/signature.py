"""Signatures: a function that an application registers in, one ``Parameter`` for each of its parameters out.

The only reader of signatures, and one thing: each kind of function has its rules for the source of a
parameter:

- ``http_parameters``, first match wins:

  0. ``Annotated`` with a marker (sources.py): the part of the request that the marker names;
  1. its name is a path parameter: that (converted if annotated and the pattern has no converter);
  2. annotated ``Request``, or called ``request``: the request;
  3. annotated ``bytes``: the raw body;
  4. annotated with a msgspec Struct, dataclass, TypedDict, ``dict``, a container or union of those: the
     body, JSON or MessagePack by its ``Content-Type``;
  5. otherwise: the query parameter of that name; ``list[…]`` takes all of them.

- ``websocket_parameters``: the socket; otherwise as for HTTP, without a body.
- ``procedure_parameters``: the parameters of the call.
- ``compiled_parameters``: the path, a part of the request by its name, or the query.

Reading happens once per function, when the application is frozen. A signature that no request can satisfy is
a ``ConfigError`` with the function's file and line. Tests: ``tests/unit/test_binding.py``,
``tests/unit/test_checks.py``.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, get_origin

from citius._core import Request, WebSocket
from citius.errors import ConfigError
from citius.records import record
from citius.web.declarations import pydantic_types
from citius.web.declarations.annotations import (
    AS_SENT,
    MadeDefault,
    constrained,
    foreign_type,
    instead_of,
    is_body,
    is_factory,
    is_of,
    made_default,
    qualified,
)
from citius.web.declarations.checks import describe, resolving
from citius.web.declarations.fillable import (
    check_file,
    check_fillable,
    is_json_text,
    is_upload,
    no_value_in,
)
from citius.web.declarations.generic_signatures import signature_of
from citius.web.declarations.parameters.marked import (
    as_marker,
    marked,
    marker_within,
    refuse_markers,
    refuse_result_marker,
)
from citius.web.declarations.parameters.sources import LENGTHS, MISSING, Depends, Marker
from citius.web.declarations.parameters.unread_markers import refuse_unread_attributes_of
from citius.web.declarations.type_kinds import (
    bare,
    has_fields,
    is_async,
    is_typed_dict,
    makes_generator,
    name_of,
    python_function,
    resolved,
)
from citius.web.middleware.base import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from citius.web.binding.depends.dependencies import Dependency

_VARIABLE: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

PythonKind = Literal["def", "async", "blocking"]
CompiledKind = Literal["compiled", "pooled", "goroutine", "pooled_goroutine"]
Kind = Literal["def", "async", "blocking", "compiled", "pooled", "goroutine", "pooled_goroutine"]

Source = Literal[
    "path",
    "request",
    "socket",
    "raw_body",
    "body",
    "query",
    "header",
    "cookie",
    "form",
    "file",
    "dependency",
    "app",
    "call",
    "context",
    "raw_path",
    "raw_query",
    "unknown",
]
"""Where the value of a parameter comes from; ``unknown`` until the rules have been applied."""

REQUEST_PARTS: Final = ("raw_path", "raw_query", "body")
"""Parameters of compiled functions with these names are the parts of the request that they name, as sent."""


@record(frozen=True, slots=True)
class Parameter:
    """One parameter of a function, with its annotation resolved."""

    name: str
    kind: inspect._ParameterKind  # pyright: ignore[reportPrivateUsage]
    annotation: Any = MISSING
    """Without the marker, and with the marker's constraints."""
    default: Any = MISSING
    source: Source = "unknown"
    marker: Marker | None = None
    depends: Depends | None = None
    """What the annotation says of the function whose value it takes."""
    dependency: Dependency | None = None
    """That function, once dependencies.py has found it."""

    @property
    def wire_name(self) -> str:
        """What the parameter is called in the request."""
        if self.marker is not None and self.marker.alias is not None:
            return self.marker.alias
        return self.name.replace("_", "-") if self.source == "header" else self.name

    @property
    def is_whole(self) -> bool:
        """Whether its fields are taken from the query, the headers, the cookies or the form one by one."""
        is_named = self.source in ("query", "header", "cookie", "form")
        return is_named and has_fields(bare(self.annotation)) and not is_json_text(self.annotation)

    @property
    def type(self) -> Any:
        """The annotation; ``Any`` where there is none."""
        return Any if self.annotation is MISSING else self.annotation

    @property
    def is_required(self) -> bool:
        """Whether the function cannot be called without it."""
        return self.default is MISSING and self.kind is not inspect.Parameter.VAR_POSITIONAL

    @property
    def is_variable(self) -> bool:
        """``*args`` or ``**kwargs``."""
        return self.kind in _VARIABLE

    @property
    def written(self) -> str:
        """Its name as in its function."""
        is_keywords = self.kind is inspect.Parameter.VAR_KEYWORD
        return f"{'**' if is_keywords else '*' if self.is_variable else ''}{self.name}"

    @property
    def is_keyword_only(self) -> bool:
        """Whether it has to be passed by name."""
        return self.kind is inspect.Parameter.KEYWORD_ONLY

    @property
    def is_request(self) -> bool:
        """Whether it takes the HTTP request: by its annotation, or by its name without one."""
        return self.annotation in (Request, Connection) or (
            self.name == "request" and self.annotation is MISSING
        )


def read(function: Callable[..., Any]) -> tuple[Parameter, ...]:
    """The parameters of a function, their sources unknown.

    Raises:
        ConfigError: An annotation cannot be resolved, or there is no signature.
    """
    if is_typed_dict(function):
        raise ConfigError(
            f"{describe(function)} is a TypedDict, which has no parameters: make it a dataclass or a "
            "msgspec.Struct"
        )
    try:
        signature = signature_of(function)
    except ConfigError as error:
        raise ConfigError(f"{describe(function)}: {error}") from None
    except NameError as error:
        raise ConfigError(
            f"an annotation of {describe(function)} cannot be resolved: {error}; "
            f"{resolving(function)}"
        ) from None
    except Exception as error:
        if hasattr(python_function(function), "__code__"):
            raise ConfigError(
                f"an annotation of {describe(function)} cannot be evaluated: {type(error).__name__}: {error}"
                f"{_blamed(function)}"
            ) from error
        raise ConfigError(f"{describe(function)} has no readable signature") from None
    _check_decorators(function)
    refuse_unread_attributes_of(function, describe(function))
    refuse_result_marker(signature.return_annotation, describe(function))
    given = _given(function)
    return tuple(
        _parameter(function, one)
        for one in signature.parameters.values()
        if one.name not in given or as_marker(given[one.name]) is not None
    )


def _given(function: Any) -> dict[str, Any]:
    """The arguments that ``functools.partial`` gives by name: they are no parameters of a request."""
    found: dict[str, Any] = {}
    outermost = function
    while True:
        if isinstance(function, partial):
            lost = marker_within(function.args)
            lost = lost or next(filter(None, map(marker_within, function.keywords.values())), None)
            if lost is not None:
                raise ConfigError(
                    f"{describe(outermost)} has {lost!r} from functools.partial where nothing reads it, by "
                    "its place or in a container; give it by name"
                )
            found = {**function.keywords, **found}
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        else:
            return found


def _check_decorators(function: Any) -> None:
    """Refuse the function of a decorator that cannot be called with what its signature says.

    That is the signature of what it wraps, and ``functools.wraps`` replaces its annotations: a marker in them
    is lost, and a parameter of another name would get the value of one of the wrapped function's.

    Raises:
        ConfigError: It has a marker, or takes other parameters.
    """
    while True:
        if isinstance(function, partial):
            function = function.func
            continue
        function = getattr(function, "__func__", function)
        if not hasattr(function, "__wrapped__") or hasattr(function, "__signature__"):
            return
        _check_cache(function)
        refuse_markers(function, "a decorator", describe(function), follow_wrapped=False)
        _check_passed_on(function)
        function = function.__wrapped__


def _check_cache(function: Any) -> None:
    """Refuse ``functools.cache`` around what can be used once: a coroutine, a generator.

    Raises:
        ConfigError: The second request would get the one of the first.
    """
    if not hasattr(function, "cache_parameters"):
        return
    if is_async(function) or makes_generator(function):
        what = "generator" if makes_generator(function) else "coroutine"
        raise ConfigError(
            f"{describe(function)} is cached by functools, which keeps its {what}, not the value: only "
            "the first call would have it; make it a `def`, or use Depends(f, scope='app') for one of all"
        )


def _check_passed_on(function: Any) -> None:
    """Refuse a function that wraps another and does not take the parameters of that by their names.

    Raises:
        ConfigError: It does not.
    """
    try:
        own = inspect.signature(function, follow_wrapped=False)
        wrapped = inspect.signature(function.__wrapped__)
    except (TypeError, ValueError):
        return  # some functions in C do not tell
    fixed = [one for one in wrapped.parameters.values() if one.kind not in _VARIABLE]
    by_name = [one.name for one in fixed if one.kind is inspect.Parameter.KEYWORD_ONLY]
    by_place = [one.name for one in fixed if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    target = function if inspect.isfunction(function) else type(function).__call__
    code = getattr(target, "__code__", None)
    if code is None:
        return
    where = f"{code.co_name} ({code.co_filename}:{code.co_firstlineno}), which wraps {describe(function)}"
    try:
        bound = own.bind(*by_place, **{name: name for name in by_name}).arguments
    except TypeError as error:
        raise ConfigError(
            f"{where}, cannot be called with its parameters: {error}; take *args and **kwargs, and pass them "
            "on"
        ) from None
    for name, value in bound.items():
        either = own.parameters[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        if either and value != name:
            raise ConfigError(
                f"{where}, would get the value of {value} as {name}: its parameters are those of what it "
                f"wraps; add {name} there, or take *args and **kwargs"
            )


def _blamed(function: Callable[..., Any]) -> str:
    """Which annotation of a function cannot be evaluated, for a message; nothing if they are no texts."""
    target = python_function(function)
    try:
        annotations: dict[str, object] = target.__annotations__
    except Exception:
        return ""  # evaluated when they are asked for, since Python 3.14
    for name, annotation in annotations.items():
        if isinstance(annotation, str):
            try:
                eval(annotation, target.__globals__)
            except Exception:
                return f", in {name}: {annotation}"
    return ""


def _parameter(function: Callable[..., Any], one: inspect.Parameter) -> Parameter:
    """A parameter with its marker taken out of its annotation or its default."""
    where = f"the parameter {one.name} of {describe(function)}"
    if isinstance(one.annotation, str):
        one = one.replace(annotation=_evaluated(function, one.annotation, where))
    if one.annotation is not MISSING:
        one = one.replace(annotation=_resolved(function, one.annotation, where))
    found = marked(one.annotation, one.default, where)
    marker, depends, annotation = found.marker, found.depends, found.annotation
    if depends is not None:
        if one.kind in _VARIABLE:
            raise ConfigError(
                f"{where} has {depends!r}, and takes any number of values; leave out its *"
            )
        return Parameter(
            one.name, one.kind, annotation, found.default, "dependency", depends=depends
        )
    if marker is not None:
        if annotation is MISSING and marker.source == "body":
            annotation = Any
        if annotation in (MISSING, Any) and marker.constraints():
            annotation = _text(where, marker)
        try:
            annotation = _constrained(annotation, marker.constraints())
        except (TypeError, ValueError) as error:
            raise ConfigError(f"{where} has {marker!r}, which cannot hold: {error}") from None
    default = found.default
    if is_factory(default) and has_fields(function):
        default = made_default(get_origin(function) or function, one.name, default)
    return Parameter(one.name, one.kind, annotation, default, marker=marker)


def _resolved(function: Callable[..., Any], annotation: object, where: str) -> object:
    """A type with the texts in it evaluated: ``list["User"]``.

    Raises:
        ConfigError: A name cannot be resolved.
    """
    try:
        return resolved(annotation, function)
    except NameError as error:
        raise ConfigError(
            f"{where} has the type {annotation}, in which {error}; import the name at run time, not under "
            "TYPE_CHECKING"
        ) from None
    except Exception:
        return annotation  # what reads the type says why


def _evaluated(function: Callable[..., Any], annotation: object, where: str) -> object:
    """An annotation that is a text in a text: ``x: "int"`` behind ``from __future__ import annotations``.

    Raises:
        ConfigError: It cannot be evaluated.
    """
    names = getattr(python_function(function), "__globals__", {})
    while isinstance(annotation, str):
        try:
            annotation = eval(annotation, names)
        except Exception as error:
            advice = f"; {resolving(function)}" if isinstance(error, NameError) else ""
            raise ConfigError(
                f"{where} has the annotation {annotation!r}, which cannot be evaluated: {error}{advice}"
            ) from None
    return annotation


def _text(where: str, marker: Marker) -> Any:
    """The type of a parameter without one, whose marker has constraints.

    Raises:
        ConfigError: They are not those of a text.
    """
    if marker.constraints().keys() <= {"pattern", *LENGTHS} and marker.source != "body":
        return str
    raise ConfigError(
        f"{where} has {marker!r} and no type; write `: int`, or what it is, in front of it"
    )


def _constrained(annotation: Any, constraints: dict[str, Any]) -> Any:
    if constraints and pydantic_types.is_pydantic(annotation):
        return pydantic_types.constrained(annotation, constraints)
    return constrained(annotation, constraints)


def read_result(function: Callable[..., Any]) -> Any:
    """The return annotation of a function, ``MISSING`` if there is none."""
    try:
        return signature_of(function).return_annotation
    except (NameError, TypeError, ValueError):
        return MISSING


def path_parameters(pattern: str) -> dict[str, str]:
    """Names and converters of the parameters in ``/items/{id:int}``."""
    return {
        name: converter or "str"
        for name, converter in re.findall(r"\{([^{}:]+)(?::([^{}]*))?\}", pattern)
    }


def kind_of(handler: Callable[..., Any], *, blocking: bool) -> PythonKind:
    """How a handler is called; an async generator function is a ``def`` that returns an iterator.

    Raises:
        ConfigError: It is no function, or ``async def`` where it is called in a thread.
    """
    if not callable(handler):
        raise ConfigError(f"a function is decorated, got {handler!r}")
    if is_async(handler):
        if blocking:
            raise ConfigError(
                f"{describe(handler)} is `async def`, so blocking=True has nothing to send to a "
                "thread; make it `def` or drop blocking=True"
            )
        return "async"
    return "blocking" if blocking else "def"


# --- handlers of routes -------------------------------------------------------------------------


def http_parameters(
    handler: Callable[..., Any], pattern: str, *, stream: bool = False
) -> tuple[Parameter, ...]:
    """The parameters of a route's handler and their sources.

    Raises:
        ConfigError: A parameter has no source, or two that contradict each other.
    """
    in_path = path_parameters(pattern)
    parameters = tuple(
        one if one.depends is not None else _of_http(handler, one, pattern, in_path)
        for one in read(handler)
    )
    check_all(handler, parameters, pattern, stream=stream)
    return parameters


def _of_http(
    handler: Callable[..., Any], parameter: Parameter, pattern: str, in_path: dict[str, str]
) -> Parameter:
    name, annotation = parameter.name, parameter.annotation
    if parameter.is_variable:
        raise ConfigError(
            f"{describe(handler)} takes {parameter.written}: name the parameters it needs, a route fills no "
            "variable ones"
        )
    if (
        name == "self"
        and annotation is MISSING
        and parameter.marker is None
        and name not in in_path
    ):
        raise ConfigError(
            f"{describe(handler)} is a method of no object: register that of one, "
            "app.get(path)(object.method)"
        )
    found = replace(parameter, source=_source_of(handler, parameter, pattern, in_path))
    if found.source == "path":
        converter = in_path[found.wire_name]
        _check_converter(handler, name, annotation, pattern, converter)
    _check_type(handler, found, in_path)
    return found


def _source_of(
    handler: Callable[..., Any], parameter: Parameter, pattern: str, in_path: dict[str, str]
) -> Source:
    name, marker = parameter.name, parameter.marker
    if marker is None:
        if name in in_path:
            return "path"
        if parameter.is_request:
            return "request"
        if parameter.annotation is bytes:
            return "raw_body"
        if is_upload(parameter.annotation):
            return "file"
        return "body" if is_body(parameter.annotation) else "query"
    if marker.source == "path" and parameter.wire_name not in in_path:
        raise ConfigError(
            f"the parameter {name} of {describe(handler)} is {marker!r}, and the path {pattern} has no "
            f"{{{parameter.wire_name}}}"
        )
    if marker.source != "path" and name in in_path and marker.alias is None:
        raise ConfigError(
            f"the parameter {name} of {describe(handler)} is in the path {pattern}, and {marker!r} takes it "
            "from elsewhere; rename one of the two"
        )
    if marker.source == "body" and parameter.annotation is bytes:
        return "raw_body"
    return marker.source  # pyright: ignore[reportReturnType]


def check_all(
    handler: Callable[..., Any], parameters: tuple[Parameter, ...], pattern: str, *, stream: bool
) -> None:
    """Refuse parameters that contradict one another.

    Raises:
        ConfigError: They do; for example two take the body.
    """
    raw = [p.name for p in parameters if p.source == "raw_body"]
    bodies = {p.wire_name: p for p in parameters if p.source == "body"}
    forms = [p.name for p in parameters if p.source in ("form", "file")]
    if raw and forms:
        raise ConfigError(
            f"{describe(handler)} wants the body of the request as {raw[0]} and as a form for {forms[0]}; "
            "it can be one of the two"
        )
    whole = [p.name for p in parameters if p.source in ("body", "raw_body")]
    if len(whole) > 1 and raw:
        raise ConfigError(
            f"{describe(handler)} wants the body of the request as {' and as '.join(whole)}; as bytes one "
            "parameter can have it"
        )
    for one in parameters:
        if one.source == "body" and one.type != bodies[one.wire_name].type:
            raise ConfigError(
                f"{describe(handler)} and its dependencies take {one.wire_name} of the body with two types"
            )
    wanted = [*raw, *bodies, *forms]
    if wanted and stream:
        raise ConfigError(
            f"{describe(handler)} has stream=True and a parameter {wanted[0]} for the whole body; "
            "read request.stream() or drop stream=True"
        )
    if any(p.name == "request" and p.source == "query" for p in parameters):
        raise ConfigError(
            f"the parameter `request` of {describe(handler)} is annotated with something other than "
            "citius.Request"
        )
    for name in path_parameters(pattern):
        if not name.isidentifier():
            raise ConfigError(f"the path parameter {{{name}}} of {pattern} is no Python name")


BodyLayout = Literal["whole", "object", "form"]


def body_layout(parameters: Sequence[Parameter]) -> BodyLayout:
    """What parameters of the body are: all of it, members of its object, or fields of its form."""
    if any(p.source in ("form", "file") for p in parameters):
        return "form"
    bodies = {p.wire_name: p.marker for p in parameters if p.source == "body"}
    embedded = any(getattr(marker, "embed", False) for marker in bodies.values())
    return "object" if embedded or len(bodies) > 1 else "whole"


def in_layout(parameter: Parameter, layout: BodyLayout) -> Parameter:
    """The parameter as it is read: what is a text or a list of texts is a plain field of a form."""
    if layout == "form" and parameter.source == "body" and not is_body(parameter.annotation):
        return replace(parameter, source="form")
    return parameter


def check_path_parameters(
    handler: Callable[..., Any],
    pattern: str,
    *,
    otherwise: str = "",
    elsewhere: frozenset[str] | set[str] = frozenset(),
) -> None:
    """Refuse a handler that cannot see a parameter of its own path.

    Args:
        handler: What the route calls.
        pattern: The route's own path, without the prefixes of mounts.
        otherwise: The name of a parameter that has the whole path.
        elsewhere: Parameters of the path that dependencies take.

    Raises:
        ConfigError: Neither the parameter nor the request is in the signature.
    """
    parameters = read(handler)
    if any(p.is_request or p.name == otherwise for p in parameters):
        return
    names = [p.name for p in parameters]
    in_request = {p.wire_name for p in parameters} | elsewhere
    for name in path_parameters(pattern):
        if name not in in_request and not name.startswith("_"):
            raise ConfigError(
                f"{describe(handler)} takes ({', '.join(names)}), which lacks the path parameter {name} of "
                f"{pattern}; add it to the signature, or write {{_{name}}} in the path if it is not needed"
            )


_CONVERTED: dict[str, Any] = {"int": int, "float": float, "str": str, "path": str}


def _check_converter(
    handler: Callable[..., Any], name: str, annotation: Any, pattern: str, converter: str
) -> None:
    made = _CONVERTED.get(converter)
    if converter in ("int", "float") and annotation in (str, int, float) and annotation is not made:
        raise ConfigError(
            f"{pattern} makes {name} an {converter}, {describe(handler)} expects "
            f"{annotation.__name__}"
        )


def needs_conversion(parameter: Parameter, in_path: dict[str, str]) -> bool:
    """Whether the extension's value is not yet what the annotation says."""
    if hasattr(parameter.annotation, "__metadata__"):  # constraints
        return True
    is_text = in_path[parameter.wire_name] in ("str", "path")
    return is_text and parameter.annotation not in AS_SENT


def _check_type(handler: Callable[..., Any], parameter: Parameter, in_path: dict[str, str]) -> None:
    """Refuse a type that no request can bring, and a default that is not of the type."""
    annotation = parameter.annotation
    if parameter.source == "file":
        return check_file(annotation, f"the parameter {parameter.name} of {describe(handler)}")
    if parameter.source in ("request", "raw_body") or annotation in AS_SENT[::2]:
        return
    where = f"the parameter {parameter.name} of {describe(handler)}"
    needs_reader = parameter.source != "path" or needs_conversion(parameter, in_path)
    if parameter.source in ("query", "header", "cookie", "form", "path") and needs_reader:
        check_fillable(annotation, parameter.source, where)
    if needs_reader:
        check_readable(annotation, where)
    if parameter.source == "path" or parameter.is_required:
        return
    if not _is_of(parameter.default, annotation):
        raise ConfigError(
            f"{where} is annotated as {name_of(annotation)}, "
            f"and its default is {parameter.default!r}; write {_with_default(parameter)}"
        )


def check_readable(annotation: Any, where: str) -> None:
    """Refuse a type that nothing can make of what a request has.

    Raises:
        ConfigError: It is one.
    """
    if annotation in AS_SENT[::2]:
        return
    if what := no_value_in(annotation):
        raise ConfigError(f"{where} has the type {annotation!r}: no request can bring {what}")
    try:
        adapter = pydantic_types.adapter_of(annotation)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    if adapter is not None:
        return
    foreign = foreign_type(annotation, where)
    if foreign is not None:
        raise ConfigError(
            f"{where} has the type {annotation!r}: "
            f"{qualified(foreign)} cannot be read from a request; {instead_of(foreign)}"
        )


def _is_of(value: Any, annotation: Any) -> bool:
    """Whether a default is of its parameter's type; what a factory makes is left to the author."""
    if type(value) is MadeDefault:
        return True
    adapter = pydantic_types.adapter_of(annotation)
    return is_of(value, annotation) if adapter is None else pydantic_types.is_of(value, adapter)


def _with_default(parameter: Parameter) -> str:
    """How the parameter can be written."""
    name, annotation = parameter.name, name_of(parameter.annotation)
    if parameter.default is None:
        return f"`{name}: {annotation} | None = None`"
    return f"`{name}: {annotation}` with a default of that type, or without one"


# --- other functions ----------------------------------------------------------------------------


def websocket_parameters(
    function: Callable[..., Any], pattern: str, socket: type, sockets: tuple[type, ...]
) -> tuple[Parameter, ...]:
    """The parameters of a WebSocket handler, or of a dependency of one: the socket, and parts of its request.

    Args:
        function: The function.
        pattern: The path of the route.
        socket: The class that the handler is called with.
        sockets: All classes of sockets.

    Raises:
        ConfigError: A parameter has no source.
    """
    in_path = path_parameters(pattern)
    found: list[Parameter] = []
    for one in read(function):
        if one.depends is not None:
            found.append(one)
            continue
        if one.annotation in sockets:
            if one.annotation is not socket:
                raise ConfigError(_other_socket(function, one.annotation, socket))
            if one.marker is not None:
                raise ConfigError(
                    f"the parameter {one.name} of {describe(function)} is the {_noun(socket)}, which no "
                    f"{type(one.marker).__name__}() reads from the request; drop it"
                )
            found.append(replace(one, source="socket"))
            continue
        made = _of_http(function, one, pattern, in_path)
        if made.source in ("body", "raw_body", "form", "file"):
            raise ConfigError(
                f"the parameter {one.name} of {describe(function)} is neither the {_noun(socket)} nor in its "
                "path, and the request for one has no body; a type with fields may be Annotated with Query()"
            )
        found.append(made)
    return tuple(found)


def socket_handler_parameters(
    handler: Callable[..., Any], pattern: str, socket: type, sockets: tuple[type, ...]
) -> tuple[Parameter, ...]:
    """The parameters of a WebSocket's handler: the first one without an annotation is the socket.

    Raises:
        ConfigError: A parameter has no source, or none is the socket.
    """
    parameters = websocket_parameters(handler, pattern, socket, sockets)
    if any(one.source == "socket" for one in parameters):
        return parameters
    for index, one in enumerate(parameters):
        if one.annotation is MISSING and one.marker is None and one.source in ("query", "request"):
            made = replace(one, source="socket", default=MISSING)
            return (*parameters[:index], made, *parameters[index + 1 :])
    raise ConfigError(f"{describe(handler)} has no parameter for the {_noun(socket)}")


def _noun(socket: type) -> str:
    return "session" if socket.__name__ == "WebTransportSession" else "WebSocket"


def _other_socket(function: Callable[..., Any], annotation: Any, socket: type) -> str:
    """What is wrong about the annotation of a socket of another class than that which the function gets."""
    called, gets = describe(function), f"it gets a citius.{socket.__name__}; annotate that"
    if "WebTransportSession" in (socket.__name__, annotation.__name__):
        what = "WebTransport session" if _noun(socket) == "session" else "WebSocket"
        return f"{called} is called for a {what}: {gets}"
    how = "`async def`" if socket is WebSocket else "a `def`"
    other = "make it `async def`" if socket is not WebSocket else "make it `def`"
    return f"{called} is called for a handler that is {how}: {gets}, or {other}"


_NOT_OF_CALLS: Final = {"header": "header section", "cookie": "cookies", "file": "files"}


def procedure_parameters(
    handler: Callable[..., Any],
    elsewhere: Callable[[Parameter], Source | None] = lambda one: None,
) -> tuple[Parameter, ...]:
    """The parameters of a procedure: all are parameters of the call.

    Args:
        handler: The procedure.
        elsewhere: The source of a parameter that is none of the call.

    Raises:
        ConfigError: A call cannot bring one of them.
    """
    found = (
        one if one.depends else replace(one, source=elsewhere(one) or "call")
        for one in read(handler)
    )
    parameters = tuple(found)
    for one in parameters:
        if one.source != "call":
            continue
        if one.marker is not None and one.marker.source in ("header", "cookie", "file"):
            raise ConfigError(
                f"the parameter {one.name} of {describe(handler)} is {one.marker!r}, and a call has no "
                f"{_NOT_OF_CALLS[one.marker.source]}: leave the marker out, or expose another function"
            )
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            raise ConfigError(f"{describe(handler)} takes **{one.name}: name its parameters")
        if one.is_variable and len(parameters) > 1:
            raise ConfigError(
                f"{describe(handler)} takes *{one.name} besides other parameters; a procedure takes "
                "either"
            )
        if one.is_request:
            raise ConfigError(
                f"{describe(handler)} takes the HTTP request, which a call has none of; expose a "
                "function that takes what it needs of it"
            )
        where = f"the parameter {one.name} of {describe(handler)}"
        check_readable(one.type, where)
        if one.default is not MISSING and not _is_of(one.default, one.type):
            raise ConfigError(
                f"{where} is annotated as {name_of(one.annotation)}, and its default is {one.default!r}"
            )
    return parameters


def compiled_parameters(function: Callable[..., Any], pattern: str) -> tuple[Parameter, ...]:
    """The parameters of a function that is compiled; compiled.py says which types they may have.

    Raises:
        ConfigError: One is variable.
    """
    in_path = path_parameters(pattern)
    found: list[Parameter] = []
    for one in read(function):
        if one.is_variable:
            raise ConfigError(
                f"{describe(function)} takes {one.written}: compiled functions name their parameters"
            )
        source: Source = "query"
        if one.name in in_path:
            source = "path"
        elif one.name in REQUEST_PARTS:
            source = one.name  # pyright: ignore[reportAssignmentType]
        said = one.depends or one.marker
        if one.depends is not None or (
            one.marker and (one.marker.alias or one.marker.source != source)
        ):
            raise ConfigError(
                f"the parameter {one.name} of {describe(function)} has {said!r}, and compiled code takes "
                "the path, the query by the names of its parameters, raw_path, raw_query and body; write "
                "dependencies=[Depends(f)] in the decorator for what is only called"
            )
        found.append(replace(one, source=source))
    return tuple(found)
