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
from typing import TYPE_CHECKING, Any, Final, Literal, Union, get_args, get_origin, is_typeddict

from citius._core import Request, parse_urlencoded
from citius.errors import ConfigError, UnprocessableContent, UnsupportedMediaType

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


def describe(handler: object) -> str:
    """A handler as a message calls it: name, file and line."""
    name = getattr(handler, "__qualname__", None) or repr(handler)
    code = getattr(inspect.unwrap(handler) if callable(handler) else handler, "__code__", None)
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code else name


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
    elif annotation is Request or (name == "request" and annotation is parameter.empty):
        source = "request"
    elif annotation is bytes:
        source = "raw_body"
    elif _is_body(annotation):
        source = "body"
    else:
        source = "query"
    return _Parameter(
        name, source, annotation, parameter.default, parameter.kind is parameter.KEYWORD_ONLY
    )


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
            "        raise UnprocessableContent('the request does not fit', errors=mistakes)",
            f"    return handler({', '.join(call)})",
        ]
    )
    exec(source, namespace)  # names are identifiers of the handler's own signature
    bound = namespace["bound"]
    bound.__name__ = getattr(handler, "__name__", "bound")
    bound.__qualname__ = getattr(handler, "__qualname__", "bound")
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
        namespace[f"d_{name}"] = parameter.default
        otherwise = f"d_{name}"
    return f"{value} if {name!r} in sent else {otherwise}"


def _converter(parameter: _Parameter) -> Callable[[Any, list[dict[str, str]]], Any]:
    """A function from text (or a list of texts) to the annotated type."""
    annotation = parameter.annotation
    name, place = parameter.name, parameter.source
    import msgspec

    if annotation not in (int, float, bool):
        import msgspec.inspect

        if isinstance(msgspec.inspect.type_info(annotation), msgspec.inspect.CustomType):
            raise ConfigError(f"the type of parameter {name} is not supported: {annotation!r}")
    convert = msgspec.convert

    def converted(value: Any, mistakes: list[dict[str, str]]) -> Any:
        try:
            return convert(value, annotation, strict=False)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at `$")
            mistakes.append({"in": place, "path": name + path.rstrip("`"), "message": message})
            return None

    def whole_number(value: str, mistakes: list[dict[str, str]]) -> Any:
        # What nearly always comes; msgspec's convert costs twice as much.
        if value.isdecimal() and value.isascii() and len(value) < 19:
            return int(value)
        return converted(value, mistakes)

    return whole_number if annotation is int else converted


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
    from citius._support import decoder, refusal_of

    annotation = parameter.annotation

    def read_body(request: Request, mistakes: list[dict[str, str]]) -> Any:
        format, label = "json", "JSON"
        data = request._json_body()  # pyright: ignore[reportPrivateUsage]
        if data is None:
            data = request.body()
            content_type = request.header("content-type")
            if not data and not parameter.required and content_type is None:
                return parameter.default
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
