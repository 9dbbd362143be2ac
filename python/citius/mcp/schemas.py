"""JSON Schemas (2020-12) of what tools take and return, by the schemas of the documentation.

In: annotations. Out: a schema that stands alone, with ``$defs`` in place of components. Made once per
function, when the application is frozen. Tests: ``tests/mcp/test_tools.py``.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, cast

from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.pydantic_types import in_json
from citius.web.openapi.schemas import Schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from citius.web.binding.signature import Parameter

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_COMPONENTS = "#/components/schemas/"


def input_schema(parameters: Sequence[Parameter], texts: dict[str, str]) -> dict[str, Any]:
    """The schema of the arguments of a call.

    Args:
        parameters: What the call brings.
        texts: What the docstring says of them.
    """
    schemas = Schemas([p.type for p in parameters], [])
    properties = {p.wire_name: _property(schemas, p, texts) for p in parameters}
    made: dict[str, Any] = {"$schema": DIALECT, "type": "object", "properties": properties}
    required = [p.wire_name for p in parameters if p.is_required]
    if required:
        made["required"] = required
    made["additionalProperties"] = False
    return _alone(made, schemas.components)


def _property(schemas: Schemas, p: Parameter, texts: dict[str, str]) -> dict[str, Any]:
    schema = {} if p.annotation in (MISSING, Any) else schemas.of(p.type)
    marker = p.marker
    if marker is not None:
        said = {"title": marker.title, "description": marker.description}
        schema |= {key: value for key, value in said.items() if value is not None}
        if marker.examples:
            said = map(in_json, marker.examples)
            schema["examples"] = [one for one in said if one is not MISSING]
        if marker.deprecated:
            schema["deprecated"] = True
    if "description" not in schema and p.name in texts:
        schema["description"] = texts[p.name]
    default = MISSING if p.default is None else in_json(p.default)
    if default is not MISSING:
        schema["default"] = default
    return schema


def object_schema(annotation: Any, *, is_sent: bool = False) -> dict[str, Any]:
    """The schema of a type with fields."""
    made, is_wrapped = output_schema(annotation, is_sent=is_sent)
    if is_wrapped:
        from citius.errors import ConfigError

        raise ConfigError(f"expected a class with fields, got {annotation!r}")
    return made


def output_schema(annotation: Any, *, is_sent: bool = True) -> tuple[dict[str, Any], bool]:
    """The schema of a result, and whether its values have to be wrapped: results are objects."""
    schemas = Schemas([], [annotation]) if is_sent else Schemas([annotation], [])
    schema = schemas.of(annotation, is_sent=is_sent)
    reference = schema.get("$ref")
    if isinstance(reference, str):
        schema = schemas.components[reference.removeprefix(_COMPONENTS)]
    is_wrapped = schema.get("type") != "object"
    if is_wrapped:
        schema = {"type": "object", "properties": {"result": schema}, "required": ["result"]}
    return _alone({"$schema": DIALECT, **schema}, schemas.components), is_wrapped


def _alone(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """The schema with what it refers to in ``$defs``."""
    used: dict[str, Any] = {}
    waiting = [schema]
    while waiting:
        for name in _references(waiting.pop()):
            if name not in used:
                used[name] = components[name]
                waiting.append(components[name])
    made = cast("dict[str, Any]", _renamed(schema))
    if used:
        made["$defs"] = {name: _renamed(one) for name, one in used.items()}
    return made


def _references(value: Any) -> Iterable[str]:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        reference = items.get("$ref")
        if isinstance(reference, str) and reference.startswith(_COMPONENTS):
            yield reference.removeprefix(_COMPONENTS)
        for one in items.values():
            yield from _references(one)
        mapping = items.get("mapping")
        if isinstance(mapping, dict):  # of a discriminator
            for one in cast("dict[str, Any]", mapping).values():
                if isinstance(one, str) and one.startswith(_COMPONENTS):
                    yield one.removeprefix(_COMPONENTS)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _references(one)


def _renamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_renamed(one) for one in cast("list[Any]", value)]
    if isinstance(value, str) and value.startswith(_COMPONENTS):
        return "#/$defs/" + value.removeprefix(_COMPONENTS)
    return value


def described(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """What a docstring says of the function, and of its parameters below ``Args:``."""
    text = inspect.getdoc(function) or ""
    lines = text.splitlines()
    starts = [at for at, line in enumerate(lines) if line.strip() in ("Args:", "Parameters:")]
    if not starts:
        return text, {}
    start = starts[0]
    found: dict[str, str] = {}
    name, end = "", start + 1
    while end < len(lines) and (not lines[end] or lines[end].startswith(" ")):
        line = lines[end]
        head, colon, rest = line.strip().partition(":")
        word = head.partition(" (")[0].lstrip("*")
        is_entry = (
            bool(colon) and word.isidentifier() and _indent(line) == _indent(lines[start + 1])
        )
        if is_entry:
            name = word
            found[name] = rest.strip()
        elif name and line.strip():
            found[name] = f"{found[name]} {line.strip()}".strip()
        end += 1
    rest = [*lines[:start], *lines[end:]]
    return "\n".join(rest).strip(), found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
