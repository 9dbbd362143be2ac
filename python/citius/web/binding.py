"""Binding: a handler in, a callable with positional arguments for the extension out.

Done once per route, when the application is frozen. A handler whose parameters are the request and path
parameters is called by the extension directly; only others get a wrapper (one, generated, so that the
interpreter sees a plain call). signature.py decides which parameter takes its value from where.

Mistakes in the query or the body are answered with 422 and all of them at once; a handler is never called
with an argument that does not match its annotation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from citius._core import parse_urlencoded, read_integer, read_real
from citius.errors import UnprocessableContent, UnsupportedMediaType
from citius.web.annotations import AS_SENT, copier_of, wants_list
from citius.web.codecs import decoder, refusal_of
from citius.web.signature import Parameter, http_parameters, needs_conversion, path_parameters

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius._core import Request


@dataclass(frozen=True, slots=True)
class Bound:
    """A handler as ``_core.Native.add`` wants it."""

    call: Callable[..., Any]
    args: tuple[str | None, ...]
    """One per positional argument of ``call``: ``None`` is the request, else a path parameter."""


def bind(handler: Callable[..., Any], pattern: str, *, stream: bool = False) -> Bound:
    """Make a handler callable with what the extension has; see signature.py for the sources.

    Raises:
        ConfigError: A parameter has no source, or two that contradict each other.
    """
    in_path = path_parameters(pattern)
    parameters = http_parameters(handler, pattern, stream=stream)
    direct = all(
        not p.is_keyword_only
        and (p.source == "request" or (p.source == "path" and not needs_conversion(p, in_path)))
        for p in parameters
    )
    if direct:
        return Bound(handler, tuple(None if p.source == "request" else p.name for p in parameters))
    return _wrap(handler, parameters, in_path)


def _wrap(
    handler: Callable[..., Any], parameters: tuple[Parameter, ...], in_path: dict[str, str]
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
            if needs_conversion(p, in_path):
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
        call.append(f"{p.name}={value}" if p.is_keyword_only else value)
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


def _read_query(parameter: Parameter, namespace: dict[str, Any]) -> str:
    """The expression for a query parameter's value, of ``pairs`` and of ``sent``, the last of each name."""
    name = parameter.name
    value = f"sent[{name!r}]"
    if wants_list(parameter.annotation):
        value = f"[v for n, v in pairs if n == {name!r}]"
    if parameter.annotation not in AS_SENT:
        namespace[f"c_{name}"] = _converter(parameter)
        value = f"c_{name}({value}, mistakes)"
    if parameter.is_required:
        missing = {"in": "query", "path": name, "message": "missing"}
        otherwise = f"mistakes.append({missing!r})"  # which is None
    else:
        copied = copier_of(parameter.default)
        namespace[f"d_{name}"] = copied or parameter.default
        otherwise = f"d_{name}()" if copied else f"d_{name}"
    return f"{value} if {name!r} in sent else {otherwise}"


def _converter(parameter: Parameter) -> Callable[[Any, list[dict[str, str]]], Any]:
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


def _body_reader(parameter: Parameter) -> Callable[[Request, list[dict[str, str]]], Any]:
    """A function that decodes the body by its media type."""
    annotation, default = parameter.annotation, parameter.default
    copied = copier_of(default)

    def read_body(request: Request, mistakes: list[dict[str, str]]) -> Any:
        format, label = "json", "JSON"
        data = request._json_body()  # pyright: ignore[reportPrivateUsage]
        if data is None:
            data = request.body()
            content_type = request.header("content-type")
            if not data and not parameter.is_required and content_type is None:
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
