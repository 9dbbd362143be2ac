"""Signatures: a handler in, a callable with positional arguments for the extension out.

Done once per route, when the application is frozen. A handler whose parameters are the request and
path parameters is called by the extension directly; only others get a wrapper (one, generated, so
that the interpreter sees a plain call). What a parameter takes its value from, first match wins:

1. its name is a path parameter: that (converted if annotated and the pattern has no converter);
2. annotated ``Request``, or called ``request``: the request;
3. annotated ``bytes``: the raw body;
4. annotated with a msgspec Struct, dataclass, TypedDict, ``dict``, a container or union of those, or
   ``Annotated[…, Body]``: the body, JSON or MessagePack by its ``Content-Type``;
5. otherwise: the query parameter of that name; ``list[…]`` takes all of them.

Mistakes in the query or the body are answered with 422 and all of them at once; a handler never sees
an argument that does not fit its annotation.
"""

from __future__ import annotations

import inspect
import re
import types
from dataclasses import dataclass, is_dataclass
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    Union,
    cast,
    get_args,
    get_origin,
    is_typeddict,
)

from citius._core import Request, parse_urlencoded, read_integer, read_real
from citius.errors import ConfigError, UnprocessableContent, UnsupportedMediaType
from citius.web.checks import describe

if TYPE_CHECKING:
    from collections.abc import Callable

PythonKind = Literal["def", "async", "blocking"]
Kind = Literal["def", "async", "blocking", "compiled", "pooled"]


class _BodyMarker:
    """See ``Body``."""

    def __repr__(self) -> str:
        return "citius.Body"


Body: Final = _BodyMarker()
"""``Annotated[list[int], Body]``: this parameter is the request's body, not a query parameter."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A handler as ``_core.Native.add`` wants it."""

    call: Callable[..., Any]
    args: tuple[str | None, ...]
    """One per positional argument of ``call``: ``None`` is the request, else a path parameter."""


@dataclass(frozen=True, slots=True)
class _Parameter:
    name: str
    source: Literal["path", "request", "raw_body", "body", "query"]
    annotation: Any
    default: Any
    keyword_only: bool

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


def kind_of(handler: Callable[..., Any], *, blocking: bool) -> PythonKind:
    """How a handler is called; an async generator function is a ``def`` that returns an iterator."""
    target = inspect.unwrap(handler)
    if not inspect.isroutine(target) and not inspect.isclass(target):
        target = type(target).__call__  # an instance may have `async def __call__`
    if inspect.iscoroutinefunction(target):
        if blocking:
            raise ConfigError(
                f"{describe(handler)} is `async def`, so blocking=True has nothing to send to a "
                "thread; make it `def` or drop blocking=True"
            )
        return "async"
    return "blocking" if blocking else "def"


def path_parameters(pattern: str) -> dict[str, str]:
    """Names and converters of the parameters in ``/items/{id:int}``."""
    return {
        name: converter or "str"
        for name, converter in re.findall(r"\{([^{}:]+)(?::([^{}]*))?\}", pattern)
    }


def bind(handler: Callable[..., Any], pattern: str, *, stream: bool = False) -> Bound:
    """Decide where each parameter comes from.

    Raises:
        ConfigError: A parameter has no source, or two that contradict each other.
    """
    in_path = path_parameters(pattern)
    parameters = [
        _classify(handler, parameter, pattern, in_path) for parameter in _signature(handler)
    ]
    _check(handler, parameters, pattern, stream=stream)
    direct = all(
        not p.keyword_only
        and (p.source == "request" or (p.source == "path" and not _needs_conversion(p, in_path)))
        for p in parameters
    )
    if direct:
        return Bound(handler, tuple(None if p.source == "request" else p.name for p in parameters))
    return _wrap(handler, parameters, in_path)


def check_path_parameters(
    handler: Callable[..., Any], pattern: str, *, otherwise: str = ""
) -> None:
    """Refuse a handler that cannot see a parameter of its own path.

    Args:
        handler: What the route calls.
        pattern: The route's own path, without the prefixes of mounts.
        otherwise: The name of a parameter that has the whole path.

    Raises:
        ConfigError: Neither the parameter nor the request is in the signature.
    """
    parameters = _signature(handler)
    if any(_is_request(p) or p.name == otherwise for p in parameters):
        return
    names = [p.name for p in parameters]
    for name in path_parameters(pattern):
        if name not in names and not name.startswith("_"):
            raise ConfigError(
                f"{describe(handler)} takes ({', '.join(names)}), which lacks the path parameter {name} of "
                f"{pattern}; add it to the signature, or write {{_{name}}} in the path if it is not needed"
            )


def _is_request(parameter: inspect.Parameter) -> bool:
    return parameter.annotation is Request or (
        parameter.name == "request" and parameter.annotation is parameter.empty
    )


def _signature(handler: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        signature = inspect.signature(handler, eval_str=True)
    except NameError as error:
        raise ConfigError(
            f"an annotation of {describe(handler)} cannot be resolved: {error}; import the name at "
            "run time, not under TYPE_CHECKING"
        ) from None
    except (TypeError, ValueError):
        raise ConfigError(f"{describe(handler)} has no readable signature") from None
    return list(signature.parameters.values())


def _classify(
    handler: Callable[..., Any],
    parameter: inspect.Parameter,
    pattern: str,
    in_path: dict[str, str],
) -> _Parameter:
    name, annotation = parameter.name, parameter.annotation
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        raise ConfigError(
            f"{describe(handler)} takes *{name}: name the parameters it needs, a route fills no "
            "variable ones"
        )
    if name in in_path:
        source = "path"
        _check_converter(handler, name, annotation, pattern, in_path[name])
    elif _is_request(parameter):
        source = "request"
    elif annotation is bytes:
        source = "raw_body"
    elif _is_body(annotation):
        source = "body"
    else:
        source = "query"
    found = _Parameter(
        name, source, annotation, parameter.default, parameter.kind is parameter.KEYWORD_ONLY
    )
    _check_type(handler, found, in_path)
    return found


def _check(
    handler: Callable[..., Any], parameters: list[_Parameter], pattern: str, *, stream: bool
) -> None:
    bodies = [p.name for p in parameters if p.source in ("body", "raw_body")]
    if len(bodies) > 1:
        raise ConfigError(
            f"{describe(handler)} wants the body of the request as {' and as '.join(bodies)}; one "
            "parameter can have it"
        )
    if bodies and stream:
        raise ConfigError(
            f"{describe(handler)} has stream=True and a parameter {bodies[0]} for the whole body; "
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


# What the text of a path or a query is already.
_AS_SENT = (inspect.Parameter.empty, str, Any)

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


def _needs_conversion(parameter: _Parameter, in_path: dict[str, str]) -> bool:
    """Whether the extension's value is a string and the annotation says otherwise."""
    return in_path[parameter.name] in ("str", "path") and parameter.annotation not in _AS_SENT


def _check_type(
    handler: Callable[..., Any], parameter: _Parameter, in_path: dict[str, str]
) -> None:
    """Refuse a type that no request can bring, and a default that is not of the type."""
    annotation = parameter.annotation
    if parameter.source in ("request", "raw_body") or annotation in _AS_SENT[::2]:
        return
    if parameter.source != "path" or _needs_conversion(parameter, in_path):
        foreign = _foreign_type(
            annotation, f"the parameter {parameter.name} of {describe(handler)}"
        )
        if foreign is not None:
            raise ConfigError(
                f"the parameter {parameter.name} of {describe(handler)} has the type {annotation!r}: "
                f"{_qualified(foreign)} cannot be read from a request; {_in_place_of(foreign)}"
            )
    if parameter.source == "path" or parameter.required:
        return
    if not is_of(parameter.default, annotation):
        raise ConfigError(
            f"the parameter {parameter.name} of {describe(handler)} is annotated as {name_of(annotation)}, "
            f"and its default is {parameter.default!r}; write {_with_default(parameter)}"
        )


_BUILT_IN = (int, float, bool, str, bytes, dict, Any)


def _foreign_type(annotation: Any, where: str) -> type | None:
    """The class in a type that msgspec cannot make of text or of a body, if there is one."""
    if annotation in _BUILT_IN:
        return None
    import msgspec.inspect

    try:
        return _custom_in(msgspec.inspect.type_info(annotation), set())
    except (TypeError, NameError) as error:
        raise ConfigError(f"{where} has a type that msgspec cannot read: {error}") from None


def _custom_in(info: Any, seen: set[Any]) -> type | None:
    """The first custom class in ``info``; fields with defaults may have one, as they need not be sent."""
    import msgspec.inspect as types_of

    if isinstance(info, types_of.CustomType):
        return info.cls
    if id(info) in seen or not isinstance(info, types_of.Type):
        return None
    seen.add(id(info))
    inner: list[Any] = [*getattr(info, "types", ()), *getattr(info, "item_types", ())]
    inner += [getattr(info, name, None) for name in ("type", "item_type", "key_type", "value_type")]
    inner += [field.type for field in getattr(info, "fields", ()) if field.required]
    found = (_custom_in(one, seen) for one in inner)
    return next((cls for cls in found if cls is not None), None)


def _qualified(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _in_place_of(cls: type) -> str:
    if any(base.__module__.partition(".")[0] == "pydantic" for base in cls.__mro__):
        return (
            "write the model as a msgspec.Struct or a dataclass, or take the request and call "
            f"{cls.__name__}.model_validate_json(request.body())"
        )
    return "use a msgspec.Struct, a dataclass, a TypedDict or a type that msgspec knows"


def is_of(value: Any, annotation: Any) -> bool:
    """Whether a default is of its parameter's type; constraints of the type are left to the author."""
    if annotation is Any:
        return True
    if hasattr(annotation, "__metadata__"):  # Annotated
        return is_of(value, annotation.__origin__)
    if isinstance(annotation, type) and get_origin(annotation) is None:
        cls: type[Any] = annotation
        if not is_typeddict(cls):
            return isinstance(value, (int, float) if cls is float else cls)
    import msgspec

    try:
        msgspec.convert(value, annotation, from_attributes=True)
    except msgspec.ValidationError:
        return _is_converted(value, annotation)
    return True


def _is_converted(value: Any, annotation: Any) -> bool:
    """Whether what a value looks like in JSON is of the type: enums, tuples and the like."""
    import msgspec

    try:
        msgspec.convert(msgspec.to_builtins(value), annotation)
    except (msgspec.ValidationError, TypeError):
        return False
    return True


def name_of(annotation: Any) -> str:
    """A type as its parameter's annotation says it."""
    return annotation.__name__ if type(annotation) is type else str(annotation)


def _with_default(parameter: _Parameter) -> str:
    """How the parameter can be written."""
    name, annotation = parameter.name, name_of(parameter.annotation)
    if parameter.default is None:
        return f"`{name}: {annotation} | None = None`"
    return f"`{name}: {annotation}` with a default of that type, or without one"


def _is_body(annotation: Any) -> bool:
    """Whether values of this type come in a body: they have fields or keys, or are said to be one."""
    if hasattr(annotation, "__metadata__"):  # Annotated
        return Body in annotation.__metadata__ or _is_body(annotation.__origin__)
    origin = get_origin(annotation)
    if origin is dict:
        return True
    if origin is Union or origin is types.UnionType or origin in (list, tuple, set, frozenset):
        return any(_is_body(argument) for argument in get_args(annotation))
    plain: Any = origin or annotation
    if not isinstance(plain, type):
        return False
    cls: type[Any] = plain
    return (
        cls is dict
        or hasattr(cls, "__struct_fields__")  # msgspec.Struct, without importing it
        or is_dataclass(cls)
        or is_typeddict(cls)
        or hasattr(cls, "__attrs_attrs__")
    )


# --- the wrapper --------------------------------------------------------------------------------


def _wrap(
    handler: Callable[..., Any], parameters: list[_Parameter], in_path: dict[str, str]
) -> Bound:
    """Generate ``def bound(request, …): return handler(…)``.

    The wrapper of an ``async def`` handler is a ``def`` too: it returns the handler's own coroutine,
    so there is no second coroutine to step.
    """
    args: list[str | None] = [None]
    body = ["    mistakes = []"]
    namespace: dict[str, Any] = {
        "handler": handler,
        "UnprocessableContent": UnprocessableContent,
    }
    call: list[str] = []
    in_query = [p for p in parameters if p.source == "query"]
    if in_query:
        namespace["parse_urlencoded"] = parse_urlencoded
        body.append("    pairs = parse_urlencoded(request.raw_query)")
        body.append("    sent = dict(pairs)")
        body += [f"    q_{p.name} = {_read_query(p, namespace)}" for p in in_query]
    for p in parameters:
        if p.source == "path":
            args.append(p.name)
            value = f"p_{p.name}"
            if _needs_conversion(p, in_path):
                namespace[f"c_{p.name}"] = _converter(p)
                body.append(f"    {value} = c_{p.name}({value}, mistakes)")
        elif p.source == "request":
            value = "request"
        elif p.source == "query":
            value = f"q_{p.name}"
        elif p.source == "raw_body":
            value = "request.body()"
        else:
            namespace[f"read_{p.name}"] = _body_reader(p)
            value = f"b_{p.name}"
            body.append(f"    {value} = read_{p.name}(request, mistakes)")
        call.append(f"{p.name}={value}" if p.keyword_only else value)
    inputs = ", ".join("request" if a is None else f"p_{a}" for a in args)
    source = "\n".join(
        [
            f"def bound({inputs}):",
            *body,
            "    if mistakes:",
            "        raise UnprocessableContent('request validation failed', errors=mistakes)",
            f"    return handler({', '.join(call)})",
        ]
    )
    exec(source, namespace)  # names are identifiers of the handler's own signature
    bound = namespace["bound"]
    bound.__name__ = getattr(handler, "__name__", "bound")
    bound.__qualname__ = getattr(handler, "__qualname__", "bound")
    bound.__wrapped__ = handler  # for messages
    return Bound(bound, tuple(args))


def _read_query(parameter: _Parameter, namespace: dict[str, Any]) -> str:
    """The expression for a query parameter's value, of ``pairs`` and of ``sent``, the last of each name."""
    name = parameter.name
    value = f"sent[{name!r}]"
    if _wants_list(parameter.annotation):
        value = f"[v for n, v in pairs if n == {name!r}]"
    if parameter.annotation not in _AS_SENT:
        namespace[f"c_{name}"] = _converter(parameter)
        value = f"c_{name}({value}, mistakes)"
    if parameter.required:
        missing = {"in": "query", "path": name, "message": "missing"}
        otherwise = f"mistakes.append({missing!r})"  # which is None
    else:
        copied = copier_of(parameter.default)
        namespace[f"d_{name}"] = copied or parameter.default
        otherwise = f"d_{name}()" if copied else f"d_{name}"
    return f"{value} if {name!r} in sent else {otherwise}"


def _converter(parameter: _Parameter) -> Callable[[Any, list[dict[str, str]]], Any]:
    """A function from text (or a list of texts) to the annotated type."""
    annotation = parameter.annotation
    name, place = parameter.name, parameter.source
    import msgspec

    convert = msgspec.convert

    def converted(value: Any, mistakes: list[dict[str, str]]) -> Any:
        try:
            return convert(value, annotation, strict=False)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `$")
            mistakes.append({"in": place, "path": name + path.rstrip("`"), "message": message})
            return None

    read = read_integer if annotation is int else read_real if annotation is float else None
    if read is None:
        return converted

    def number(value: str, mistakes: list[dict[str, str]]) -> Any:
        # Compiled handlers read numbers with the same function. msgspec has the words for what is wrong, and
        # integers that are longer.
        found = read(value)
        return converted(value, mistakes) if found is None else found

    return number


def copier_of(default: Any) -> Callable[[], Any] | None:
    """What copies a default that a handler could change for the next request; ``None`` for all others."""
    cls = cast("Any", type(default))
    is_record = hasattr(cls, "__struct_fields__") or is_dataclass(cls)
    if not is_record and cls not in (list, dict, set, bytearray):
        return None
    if not is_record and not default:
        return cast("Callable[[], Any]", cls)
    from copy import deepcopy

    return partial(deepcopy, default)


def _wants_list(annotation: Any) -> bool:
    """``list[int]``, ``tuple[str, ...]``, ``set[int] | None``."""
    if hasattr(annotation, "__metadata__"):
        return _wants_list(annotation.__origin__)
    origin = get_origin(annotation)
    if origin is Union or origin is types.UnionType:
        return any(_wants_list(argument) for argument in get_args(annotation))
    return (origin or annotation) in (list, tuple, set, frozenset)


def _body_reader(parameter: _Parameter) -> Callable[[Request, list[dict[str, str]]], Any]:
    """A function that decodes the body by its media type."""
    from citius.web._support import decoder, refusal_of

    annotation, default = parameter.annotation, parameter.default
    copied = copier_of(default)

    def read_body(request: Request, mistakes: list[dict[str, str]]) -> Any:
        format, label = "json", "JSON"
        data = request._json_body()  # pyright: ignore[reportPrivateUsage]
        if data is None:
            data = request.body()
            content_type = request.header("content-type")
            if not data and not parameter.required and content_type is None:
                return copied() if copied else default
            format, label = _format_of(content_type)
        try:
            return decoder(format, annotation)(data)
        except Exception as error:
            refusal = refusal_of(error, label)
            if refusal is None:
                raise
            if not isinstance(refusal, UnprocessableContent):
                raise refusal from None
            mistakes.extend(dict(mistake) for mistake in refusal.errors)
            return None

    return read_body


def _format_of(content_type: str | None) -> tuple[str, str]:
    """How a body is encoded, and how messages call that."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    if media_type == "application/json" or media_type.endswith("+json"):
        return "json", "JSON"
    if media_type in MSGPACK_TYPES:
        return "msgpack", "MessagePack"
    raise UnsupportedMediaType(
        f"expected application/json or application/msgpack, got {media_type or 'no Content-Type'}"
    )


MSGPACK_TYPES = frozenset(
    ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack")
)
"""RFC-less until 2025: the registered name and the two that came before it."""
