"""Tools, resources and prompts: what was declared of each in, what lists say of it and what is called out.

Tests: ``tests/mcp/test_tools.py``.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args, get_origin
from urllib.parse import unquote

from citius.errors import ConfigError
from citius.mcp.binding import (
    Bound,
    Function,
    Guards,
    bind_guards,
    bind_texts,
    bind_tool,
    call_parameters,
    endpoint_of,
)
from citius.mcp.protocol import encode
from citius.mcp.results import contents, messages, tool_results
from citius.mcp.schemas import described, input_schema
from citius.web.declarations.annotations import without_none
from citius.web.declarations.checks import describe
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.type_kinds import bare
from citius.web.responses.results import responder

if TYPE_CHECKING:
    import enum
    from collections.abc import Callable, Mapping

    from citius.mcp.server import MCPServer
    from citius.web.binding.depends.dependencies import Resolver
    from citius.web.binding.signature import Parameter
    from citius.web.execution.thread_pool import BlockingPool

NAME_CHARS_MAX: Final = 128
_NAME_CHARS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./")


@dataclass(frozen=True, slots=True)
class Said:
    """What lists say of a tool, a resource or a prompt besides its schemas."""

    title: str | None = None
    description: str | None = None
    icons: tuple[Mapping[str, object], ...] = ()
    meta: Mapping[str, object] | None = None

    def members(self, text: str) -> dict[str, Any]:
        """The members of a list's item."""
        made: dict[str, Any] = {}
        if self.title is not None:
            made["title"] = self.title
        description = self.description if self.description is not None else text
        if description:
            made["description"] = description
        if self.icons:
            made["icons"] = [dict(one) for one in self.icons]
        if self.meta is not None:
            made["_meta"] = dict(self.meta)
        return made


def check_name(what: str, name: str) -> str:
    """A name, if clients take it.

    Raises:
        ConfigError: They do not.
    """
    if not 0 < len(name) <= NAME_CHARS_MAX or not _NAME_CHARS.issuperset(name):
        raise ConfigError(
            f"{what}: expected a name of 1 to {NAME_CHARS_MAX} letters, digits, _, -, . and /, got {name!r}"
        )
    return name


@dataclass(slots=True)
class Tool:
    """A tool as it was declared, and what becomes of it."""

    name: str
    function: Function
    said: Said
    annotations: Mapping[str, object]
    headers: Mapping[str, str]
    """Header fields in which clients repeat arguments, by the arguments' names."""
    schema: Mapping[str, object]
    """Further keywords of the schema of its arguments."""
    item: dict[str, Any] = field(default_factory=dict[str, Any])
    bound: Bound = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    mirrored: tuple[tuple[str, str], ...] = ()
    """Arguments and the fields that repeat them."""

    def bind(self, resolver: Resolver, pool: BlockingPool | None, *, in_pool: bool) -> None:
        """Make it what can be called.

        Raises:
            ConfigError: It cannot.
        """
        endpoint = endpoint_of(self.function, self.name, resolver)
        parameters = call_parameters(endpoint)
        respond, schema = tool_results(endpoint)
        self.bound = bind_tool(endpoint, parameters, respond, pool, in_pool=in_pool)
        text, of_parameters = described(self.function.call)
        inputs = {**input_schema(parameters, of_parameters), **self.schema}
        self.mirrored = self._mirrored(inputs)
        self.item = {"name": self.name, **self.said.members(text), "inputSchema": inputs}
        if schema is not None:
            self.item["outputSchema"] = schema
        if self.annotations:
            self.item["annotations"] = dict(self.annotations)

    def _mirrored(self, schema: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        for argument, header in self.headers.items():
            one = schema["properties"].get(argument)
            if one is None:
                raise ConfigError(
                    f"{self.function.what} has headers= for {argument!r}, which it does not take"
                )
            if one.get("type") not in ("string", "integer", "boolean"):
                raise ConfigError(
                    f"{self.function.what} has headers= for {argument!r}, which is no text, int or bool"
                )
            if (
                not header
                or not header.replace("-", "").replace("_", "").isalnum()
                or not header.isascii()
            ):
                raise ConfigError(
                    f"{self.function.what} has headers= with {header!r}, which no field is called"
                )
            one["x-mcp-header"] = header
            found.append((argument, f"mcp-param-{header.lower()}"))
        if len({header for _, header in found}) < len(found):
            raise ConfigError(f"{self.function.what} has headers= with two arguments in one field")
        return tuple(found)


@dataclass(slots=True)
class Resource:
    """A resource, or a template of resources, as it was declared, and what becomes of it."""

    uri: str
    name: str
    function: Function
    said: Said
    mime_type: str | None
    annotations: Mapping[str, object]
    item: dict[str, Any] = field(default_factory=dict[str, Any])
    bound: Bound = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    template: Template | None = None
    arguments: dict[str, Parameter] = field(default_factory=dict[str, "Parameter"])
    guards: Guards = field(default_factory=Guards)

    def bind(self, resolver: Resolver, pool: BlockingPool | None, *, in_pool: bool) -> None:
        """Make it what can be read.

        Raises:
            ConfigError: It cannot.
        """
        endpoint = endpoint_of(self.function, self.uri, resolver)
        parameters = call_parameters(endpoint)
        self.arguments = {p.wire_name: p for p in parameters}
        wanted = set(self.template.names) if self.template is not None else set[str]()
        lacking = {p.wire_name for p in parameters if p.is_required} - wanted
        if lacking or wanted - self.arguments.keys():
            names = ", ".join(sorted(lacking or wanted - self.arguments.keys()))
            how = "are not in the URI" if lacking else "the function does not take"
            raise ConfigError(
                f"{self.function.what} of {describe(self.function.call)} has parameters that {how}: {names}"
            )
        # The URI that was read is known when it is.
        keep = responder(endpoint) or _just
        self.bound = bind_texts(endpoint, parameters, keep, pool, in_pool=in_pool)
        self.guards = bind_guards(endpoint, parameters, pool, in_pool=in_pool)
        text, _ = described(self.function.call)
        key = "uri" if self.template is None else "uriTemplate"
        self.item = {key: self.uri, "name": self.name, **self.said.members(text)}
        if self.mime_type is not None:
            self.item["mimeType"] = self.mime_type
        if self.annotations:
            self.item["annotations"] = dict(self.annotations)

    def result(self, uri: str, value: Any) -> bytes:
        """The result of reading it."""
        return contents(uri, self.mime_type, value)


def _just(value: Any) -> Any:
    return value


@dataclass(slots=True)
class Prompt:
    """A prompt as it was declared, and what becomes of it."""

    name: str
    function: Function
    said: Said
    item: dict[str, Any] = field(default_factory=dict[str, Any])
    bound: Bound = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    arguments: dict[str, Parameter] = field(default_factory=dict[str, "Parameter"])
    guards: Guards = field(default_factory=Guards)

    def bind(self, resolver: Resolver, pool: BlockingPool | None, *, in_pool: bool) -> None:
        """Make it what can be called.

        Raises:
            ConfigError: It cannot.
        """
        endpoint = endpoint_of(self.function, self.name, resolver)
        parameters = call_parameters(endpoint)
        self.arguments = {p.wire_name: p for p in parameters}
        text, of_parameters = described(self.function.call)
        said = self.said.members(text)
        description = said.get("description")

        def respond(value: Any) -> bytes:
            return messages(description, value)

        self.bound = bind_texts(endpoint, parameters, respond, pool, in_pool=in_pool)
        self.guards = bind_guards(endpoint, parameters, pool, in_pool=in_pool)
        self.item = {"name": self.name, **said}
        if parameters:
            self.item["arguments"] = [_argument(p, of_parameters) for p in parameters]


def _argument(p: Parameter, texts: dict[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {"name": p.wire_name, "required": p.is_required}
    said = p.marker.description if p.marker is not None else None
    description = said or texts.get(p.name)
    if description:
        made["description"] = description
    return made


def choices(p: Parameter) -> list[str]:
    """The texts that a parameter may have, if its type lists them."""
    import enum

    annotation = bare(without_none(p.annotation)) if p.annotation is not MISSING else str
    if get_origin(annotation) is Literal:
        return [str(one) for one in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        members: list[enum.Enum] = list(annotation)
        return [str(one.value) for one in members]
    return ["true", "false"] if annotation is bool else []


async def completed(
    function: Callable[..., Any], written: str, arguments: Mapping[str, str]
) -> list[str]:
    """The texts of a completion."""
    takes = len(inspect.signature(function).parameters)
    found = function(written, arguments) if takes > 1 else function(written)
    if inspect.isawaitable(found):
        found = await found
    return [str(one) for one in cast("list[Any]", found)]


class Template:
    """A URI with parameters: ``{name}`` is a part without ``/``, ``{+name}`` may have any.

    Args:
        uri: The template (RFC 6570, levels 1 and 2).
        where: What messages call it.

    Raises:
        ConfigError: It is none.
    """

    __slots__ = ("_literals", "_parts", "names")

    def __init__(self, uri: str, where: str) -> None:
        self._literals: list[str] = []
        self._parts: list[tuple[str, bool]] = []
        rest = uri
        while True:
            literal, opened, rest = rest.partition("{")
            if "}" in literal:
                raise ConfigError(f"{where}: a }} without a {{")
            self._literals.append(literal)
            if not opened:
                break
            name, closed, rest = rest.partition("}")
            is_whole = name.startswith("+")
            name = name.removeprefix("+")
            if not closed or not name.isidentifier():
                raise ConfigError(f"{where}: expected {{name}} or {{+name}}, got {{{name}")
            if self._parts and not self._literals[-1]:
                raise ConfigError(f"{where}: nothing stands between two parameters")
            self._parts.append((name, is_whole))
        self.names = [name for name, _ in self._parts]
        if len(set(self.names)) < len(self.names):
            raise ConfigError(f"{where}: two parameters have one name")

    def match(self, uri: str) -> dict[str, str] | None:
        """The parameters of a URI; ``None`` if it is none of the template's."""
        literals = self._literals
        if not uri.startswith(literals[0]):
            return None
        at, found = len(literals[0]), dict[str, str]()
        last = len(self._parts) - 1
        for index, (name, is_whole) in enumerate(self._parts):
            literal = literals[index + 1]
            if index == last:
                end = len(uri) - len(literal)
                if end < at or not uri.endswith(literal):
                    return None
            else:
                end = uri.find(literal, at)
            value = uri[at:end]
            if end < 0 or not value or ("/" in value and not is_whole):
                return None
            found[name] = text = unquote(value)
            if "/" in text and not is_whole:
                return None  # it was written as %2F
            at = end + len(literal)
        return found if at == len(uri) else None


def encoded_lists(server: MCPServer) -> dict[str, bytes]:
    """The results of lists, without their ends."""
    lists = {
        "tools/list": ("tools", list(server.tools.values())),
        "resources/list": ("resources", list(server.resources.values())),
        "resources/templates/list": ("resourceTemplates", server.templates),
        "prompts/list": ("prompts", list(server.prompts.values())),
    }
    return {
        method: encode({key: [one.item for one in cast("list[Any]", entries)]})[:-1]
        for method, (key, entries) in lists.items()
    }
