"""Routes as tools: ``@app.get("/items/{id}", tool=True)`` in, a tool whose calls are requests of it out.

A call becomes a request in memory, with the fields of the one that has brought it, and passes all that a
request of the route passes: middleware, dependencies, checks, limits. So nothing that protects the route is
left out. Parameters of the path and the query are arguments, a body is one by the name of its parameter;
header fields and cookies are those of the client. Tests: ``tests/mcp/test_route_tools.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from citius.errors import ConfigError, HTTPError, RpcError
from citius.mcp.binding import Bound, no_object
from citius.mcp.content import Audio, Embedded, Image
from citius.mcp.entries import check_name
from citius.mcp.protocol import encode, parsed
from citius.mcp.results import any_result, failed, structured
from citius.mcp.schemas import described, input_schema, output_schema
from citius.settings.config import Config
from citius.web.binding.signature import body_layout, path_parameters
from citius.web.declarations.annotations import is_encoded
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.type_kinds import kind_of
from citius.web.interop.asgi import ASGIAdapter
from citius.web.responses.declared.filters import ALL_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius._core import Request
    from citius.mcp.server import MCPServer
    from citius.web.application.app import App
    from citius.web.binding.signature import Parameter
    from citius.web.routing.endpoint import Endpoint

RESPONSE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of a response that become a result. Exceeded: the tool has failed."""

_OF_THE_MESSAGE: Final = frozenset(
    (
        "accept", "accept-encoding", "connection", "content-encoding", "content-length", "content-type",
        "expect", "forwarded", "last-event-id", "te", "trailer", "transfer-encoding", "upgrade",
    )
)  # fmt: skip
"""Fields of a client's message, which say nothing of the request that is made of it."""

_HINTS: Final = {
    "GET": {"readOnlyHint": True},
    "PUT": {"idempotentHint": True},
    "DELETE": {"destructiveHint": True, "idempotentHint": True},
}


@dataclass(frozen=True, slots=True)
class _NoFunction:
    kind: str = "async"


@dataclass(slots=True)
class RouteTool:
    """A tool that is a route."""

    name: str
    item: dict[str, Any]
    bound: Bound
    route: str
    """Its method and path."""
    mirrored: tuple[tuple[str, str], ...] = ()
    function: Any = field(default_factory=_NoFunction)

    def bind(self, *_: object, **__: object) -> None:
        """It is bound when it is made."""


def add_route_tools(app: App, endpoints: Iterable[Endpoint]) -> None:
    """Add a tool for each route that wants to be one, to the servers of its application.

    Raises:
        ConfigError: There is no server, or the route is nothing that a call can be made of.
    """
    adapter: ASGIAdapter | None = None
    for endpoint in endpoints:
        said = endpoint.operation.tool
        if said is False or endpoint.method == "HEAD":
            continue
        servers: list[MCPServer] = [*getattr(endpoint.app, "mcp_servers", ()), *app.mcp_servers]
        if not servers:
            raise ConfigError(
                f"{endpoint.where} has tool=True, and its application has no MCP server: write "
                "mcp = app.mcp('/mcp')"
            )
        if adapter is None:
            adapter = ASGIAdapter(app, Config())
        name = said if isinstance(said, str) else endpoint.name
        tool = _tool(check_name(f"the tool of {endpoint.where}", name), endpoint, adapter)
        for server in dict.fromkeys(servers):
            known: Any = server.tools.get(name)
            if known is not None and getattr(known, "route", "") != tool.route:
                what = f"{tool.route} of {endpoint.where}"
                raise ConfigError(
                    f"there are two tools {name!r}: the second is {what}; write tool='other_name' there, or "
                    "a route of its own for each method"
                )
            server.tools[name] = cast("Any", tool)


def _tool(name: str, endpoint: Endpoint, adapter: ASGIAdapter) -> RouteTool:
    arguments = _arguments(endpoint)
    text, of_parameters = described(endpoint.handler)
    operation = endpoint.operation
    item: dict[str, Any] = {"name": name}
    if operation.summary:
        item["title"] = operation.summary
    description = operation.description or text
    if description:
        item["description"] = description
    item["inputSchema"] = input_schema(list(arguments.values()), of_parameters)
    schema, is_wrapped = None, False
    result = endpoint.result
    if result is not MISSING and is_encoded(result) and operation.fields == ALL_FIELDS:
        schema, is_wrapped = output_schema(result)
        item["outputSchema"] = schema
    hints = _HINTS.get(endpoint.method)
    if hints is not None:
        item["annotations"] = hints
    call = _RouteCall(endpoint, arguments, adapter, schema is not None, is_wrapped)
    bound = Bound(call, is_async=True, takes_context=False)
    return RouteTool(name, item, bound, f"{endpoint.method} {endpoint.pattern}")


def _arguments(endpoint: Endpoint) -> dict[str, Parameter]:
    """The parameters of a route that a call brings."""
    kind = "an iterator" if kind_of(endpoint.result).kind == "stream" else ""
    if endpoint.stream or endpoint.is_lines or kind:
        raise ConfigError(f"{endpoint.where} has tool=True and streams, and a result is one value")
    found: dict[str, Parameter] = {}
    for p in endpoint.inputs:
        if p.source in ("form", "file", "raw_body"):
            raise ConfigError(
                f"{endpoint.where} has tool=True and takes {p.name} from a form or as bytes, which no call "
                "brings"
            )
        if p.source in ("path", "query", "body"):
            found[p.wire_name] = p
    for name in path_parameters(endpoint.pattern):
        if name not in found:
            raise ConfigError(
                f"{endpoint.where} has tool=True, and its path the parameter {name}, which it does "
                "not take by name"
            )
    return found


class _RouteCall:
    """Calls a route."""

    def __init__(
        self,
        endpoint: Endpoint,
        arguments: dict[str, Parameter],
        adapter: ASGIAdapter,
        has_schema: bool,
        is_wrapped: bool,
    ) -> None:
        self._method = endpoint.method
        self._pattern = endpoint.pattern
        self._arguments = arguments
        self._converters = path_parameters(endpoint.pattern)
        self._adapter = adapter
        self._has_schema, self._is_wrapped = has_schema, is_wrapped
        self._is_object = body_layout(endpoint.inputs) == "object"

    async def __call__(self, request: Request, context: object, params: Any) -> bytes:
        """The result of a call."""
        path, query, body = self._request_of(params)
        headers = [
            (name.encode("latin-1"), value.encode("latin-1"))
            for name, value in request.header_items()
            if name not in _OF_THE_MESSAGE and not name.startswith(("mcp-", "x-forwarded-"))
        ]
        headers.append((b"accept", b"application/json"))
        if body is not None:
            headers.append((b"content-type", b"application/json"))
            headers.append((b"content-length", str(len(body)).encode()))
        scope: dict[str, Any] = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": self._method,
            "scheme": request.scheme, "path": path, "raw_path": path.encode(), "query_string": query,
            "root_path": "", "headers": headers, "client": request.client, "server": None,
        }  # fmt: skip
        response = _Response(body or b"")
        await self._adapter(scope, response.receive, cast("Any", response.send))
        return self._result(response, path)

    def _request_of(self, params: Any) -> tuple[str, bytes, bytes | None]:
        """Path, query and body of the arguments of a call."""
        given = parsed(params)
        given = dict[str, Any]() if given is None else given
        if not isinstance(given, dict):
            raise no_object()
        values = cast("dict[str, Any]", given)
        for name in values:
            if name not in self._arguments:
                raise _mistake(f"#/{name}", "unknown parameter")
        path, query, members = self._pattern, list[str](), dict[str, Any]()
        for name, p in self._arguments.items():
            value = values.get(name)
            if p.source == "body":
                if name in values:
                    members[name] = value
                elif p.is_required:
                    raise _mistake(f"#/{name}", "missing")
                continue
            if p.source == "path":
                if value is None:
                    raise _mistake(f"#/{name}", "missing")
                path = self._with(path, name, _text(value))
            elif value is not None:
                query += _pairs(p, name, value)
        body = None
        if members:
            body = encode(members if self._is_object else next(iter(members.values())))
        return path, "&".join(query).encode(), body

    def _with(self, path: str, name: str, text: str) -> str:
        converter = self._converters[name]
        safe = "/" if converter == "path" else ""
        written = f"{{{name}}}" if f"{{{name}}}" in path else f"{{{name}:{converter}}}"
        if text in (".", "..") or not text:
            raise _mistake(f"#/{name}", "no part of a path can be that")
        return path.replace(written, quote(text, safe=safe), 1)

    def _result(self, response: _Response, path: str) -> bytes:
        data, media_type = response.data, response.media_type
        if response.is_long:
            return failed(f"the response has more than {RESPONSE_BYTES_MAX} bytes")
        if response.status >= 400:
            raise response.error()
        if media_type == "application/json":
            if self._has_schema:
                return structured(data, is_wrapped=self._is_wrapped)
            return any_result(parsed(data))
        if not data:
            return any_result(None)
        if media_type.startswith("text/"):
            return any_result(data.decode("utf-8", "replace"))
        if media_type.startswith("image/"):
            return any_result(Image(data, media_type))
        if media_type.startswith("audio/"):
            return any_result(Audio(data, media_type))
        return any_result(Embedded(path, data, media_type or None))


class _Response:
    """What the route has responded."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._is_sent = False
        self._pieces: list[bytes] = []
        self._size = 0
        self.is_long = False
        self.status = 500
        self.headers: dict[str, str] = {}

    async def receive(self) -> dict[str, Any]:
        """The body of the request; then nothing more comes."""
        if self._is_sent:
            from asyncio import Event

            await Event().wait()
        self._is_sent = True
        return {"type": "http.request", "body": self._body, "more_body": False}

    async def send(self, message: dict[str, Any]) -> None:
        """A part of the response."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1"): value.decode("latin-1")
                for name, value in message["headers"]
            }
            return
        piece: bytes = message.get("body", b"")
        self._size += len(piece)
        if self._size > RESPONSE_BYTES_MAX:
            self.is_long = True
            self._pieces.clear()
        else:
            self._pieces.append(piece)

    @property
    def data(self) -> bytes:
        """The body."""
        return b"".join(self._pieces)

    @property
    def media_type(self) -> str:
        """Its media type."""
        return self.headers.get("content-type", "").partition(";")[0].strip()

    def error(self) -> HTTPError:
        """An error as the handler has raised it."""
        detail, errors = self.data.decode("utf-8", "replace")[:1000], list[dict[str, str]]()
        if self.media_type == "application/problem+json":
            problem = parsed(self.data)
            detail = problem.get("detail") or problem.get("title", "")
            errors = problem.get("errors", [])
        kept = {
            name: value
            for name, value in self.headers.items()
            if name in ("www-authenticate", "retry-after")
        }
        return HTTPError(self.status, detail, kept, errors)


def _mistake(pointer: str, detail: str) -> RpcError:
    errors = [{"in": "params", "pointer": pointer, "detail": detail}]
    text = f"the arguments do not match: {pointer}: {detail}"
    return RpcError(text, type="InvalidParams", data={"errors": errors})


def _pairs(p: Parameter, name: str, value: Any) -> list[str]:
    """An argument as pairs of a query."""
    if p.is_whole and isinstance(value, dict):
        return [
            pair
            for key, one in cast("dict[str, Any]", value).items()
            if one is not None
            for pair in _listed(key, one)
        ]
    return _listed(name, value)


def _listed(name: str, value: Any) -> list[str]:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [f"{quote(name, safe='')}={quote(_text(one), safe='')}" for one in items]


def _text(value: Any) -> str:
    """A value as it is written in a path or a query."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    return encode(value).decode()


Called = "Callable[[Request, object, Any], Any]"
