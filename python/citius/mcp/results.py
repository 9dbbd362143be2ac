"""Results: what a function returned in, the members of its result in JSON out.

A result is made without its closing brace, which the version adds (dispatch.py). The type that a tool is
annotated with holds, as that of a route: values are made to be of it, and only its fields are sent. Tests:
``tests/mcp/test_tools.py``.
"""

from __future__ import annotations

from types import NoneType
from typing import TYPE_CHECKING, Any, cast

from citius.errors import ConfigError
from citius.mcp.content import Content, Embedded, Message, ToolResult, block_of
from citius.mcp.protocol import encode
from citius.mcp.schemas import output_schema
from citius.web.binding.signature import read_result
from citius.web.declarations import codecs
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.type_kinds import bare, has_fields, name_of
from citius.web.responses.results import responder

if TYPE_CHECKING:
    from collections.abc import Callable

    from citius.web.routing.endpoint import Endpoint


class WithMeta(bytes):
    """A result that ends with its ``_meta``."""

    __slots__ = ()


_TEXT = b'{"content":[{"type":"text","text":'


_STRUCTURED = b'}],"structuredContent":'
_WRAPPED = _STRUCTURED + b'{"result":'


def tool_results(endpoint: Endpoint) -> tuple[Callable[[Any], bytes], dict[str, Any] | None]:
    """What makes a result of a tool's value, and the schema of its structured content.

    Raises:
        ConfigError: The type of the result has no schema.
    """
    annotation = endpoint.result
    if annotation is MISSING or annotation is Any:
        is_content = read_result(endpoint.handler) is not MISSING and annotation is MISSING
        return _of_text(endpoint) if is_content else any_result, None
    if bare(annotation) in (str, None, NoneType):
        return _of_text(endpoint), None
    if bare(annotation) is bytes:
        raise ConfigError(
            f"{endpoint.where} returns bytes, which have no place in a result: return Image, Audio or "
            "Embedded of citius.mcp"
        )
    schema, is_wrapped = output_schema(annotation)
    keep = responder(endpoint)
    encode_json = codecs.encode_json

    def made(value: Any) -> bytes:
        data = encode_json(value if keep is None else keep(value))
        return structured(data, is_wrapped=is_wrapped)

    return made, schema


def _of_text(endpoint: Endpoint) -> Callable[[Any], bytes]:
    """The result of a function that is annotated with ``str`` or ``None``, or declares content.

    It is an error if that returns an object with fields, all of which would be sent.
    """
    declared = MISSING if endpoint.result is MISSING else bare(endpoint.result)
    keep = responder(endpoint) if declared is str else None

    def made(value: Any) -> bytes:
        if keep is not None:
            value = keep(value)
        items = cast("list[Any]", value) if isinstance(value, (list, tuple)) else [value]
        for one in items:
            is_record = has_fields(type(one)) and not isinstance(one, (Content, ToolResult))
            if is_record or (declared in (None, NoneType) and value is not None):
                name = "content" if declared is MISSING else name_of(declared)
                raise TypeError(f"{endpoint.where} returned {value!r:.200}, and declares {name}")
        return any_result(value)

    return made


def structured(data: bytes, *, is_wrapped: bool) -> bytes:
    """The result of a value in JSON."""
    text = encode(data.decode())
    if is_wrapped:
        return _TEXT + text + _WRAPPED + data + b"}"
    return _TEXT + text + _STRUCTURED + data


def any_result(value: Any) -> bytes:
    """The result of a value of any type."""
    if isinstance(value, str):
        return b"%b%b}]" % (_TEXT, encode(value))
    if value is None:
        return b'{"content":[]'
    if isinstance(value, ToolResult):
        return _whole(value)
    if isinstance(value, Content):
        return b'{"content":%b' % encode([value.block()])
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        if items and all(isinstance(one, str | Content) for one in items):
            return b'{"content":%b' % encode([block_of(one) for one in items])
    data = codecs.encode_json(cast("object", value))
    made = b"%b%b}]" % (_TEXT, encode(data.decode()))
    return b'%b,"structuredContent":%b' % (made, data) if data[:1] == b"{" else made


def _whole(result: ToolResult) -> bytes:
    made: dict[str, Any] = {"content": [block_of(one) for one in result.content]}
    if result.structured is not None:
        made["structuredContent"] = dict(result.structured)
        if not result.content:
            text = codecs.encode_json(made["structuredContent"]).decode()
            made["content"] = [{"type": "text", "text": text}]
    if result.is_error:
        made["isError"] = True
    if result.meta is None:
        return codecs.encode_json(made)[:-1]
    made["_meta"] = dict(result.meta)
    return WithMeta(codecs.encode_json(made)[:-1])


def failed(text: str) -> bytes:
    """The result of a tool that has failed."""
    return b'%b%b}],"isError":true' % (_TEXT, encode(text))


def contents(uri: str, mime_type: str | None, value: Any) -> bytes:
    """The result of ``resources/read``."""
    items = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
    if items and all(isinstance(one, Embedded) for one in items):
        made = [cast("Embedded", one).contents() for one in items]
    elif isinstance(value, str | bytes):
        made = [Embedded(uri, value, mime_type).contents()]
    else:
        text = codecs.encode_json(cast("object", value)).decode()
        made = [Embedded(uri, text, mime_type or "application/json").contents()]
    return encode({"contents": made})[:-1]


def messages(description: str | None, value: Any) -> bytes:
    """The result of ``prompts/get``.

    Raises:
        TypeError: The prompt has returned something else.
    """
    items = cast("list[Any]", value) if isinstance(value, list | tuple) else [value]
    sent: list[dict[str, Any]] = []
    for one in items:
        if isinstance(one, (str, Content)):
            one = Message(one)
        if not isinstance(one, Message):
            raise TypeError(
                f"a prompt returned {one!r:.200}; expected a text, content, a Message, or a list of these"
            )
        sent.append(one.sent())
    made: dict[str, Any] = {"messages": sent}
    if description:
        made["description"] = description
    return encode(made)[:-1]
