"""JSON Schemas of annotations, made by msgspec; types with fields become components.

All annotations of a document are given at once, so that equal names of different classes are told apart.
Tests: ``tests/gateway/test_openapi.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from citius.web.pydantic_types import adapter_of
from citius.web.pydantic_types import schemas as pydantic_schemas
from citius.web.sources import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX = "#/components/schemas/"


class Mistake(msgspec.Struct, rename={"in_": "in"}):
    """A value of the request that does not match its type."""

    in_: str
    pointer: str
    detail: str


class Problem(msgspec.Struct, omit_defaults=True):
    """Problem details (RFC 9457)."""

    title: str
    status: int
    detail: str = ""
    errors: list[Mistake] = []


class Schemas:
    """The schemas of a document.

    Args:
        received: All types that ``of`` will be asked for as those of requests.
        sent: The same of responses.
    """

    def __init__(self, received: Iterable[Any], sent: Iterable[Any]) -> None:
        in_requests = {_key(one): _plain(one) for one in received}
        in_responses = {_key(one): _plain(one) for one in sent}
        adapters = {
            key: adapter
            for key, one in {**in_requests, **in_responses}.items()
            if (adapter := adapter_of(one)) is not None
        }
        known = {**in_requests, **in_responses}
        known = {key: one for key, one in known.items() if key not in adapters}
        schemas, self.components = msgspec.json.schema_components(
            [*known.values(), Problem], ref_template=_PREFIX + "{name}"
        )
        self._by_key = dict(zip(known, schemas, strict=False))
        self._by_mode, components = pydantic_schemas(
            {key: one for key, one in adapters.items() if key in in_requests},
            {key: one for key, one in adapters.items() if key in in_responses},
            _PREFIX,
        )
        self._add(components)

    def of(self, annotation: Any, *, is_sent: bool = False) -> dict[str, Any]:
        """The schema of a type; a reference if it has fields."""
        key = _key(annotation)
        found = self._by_mode.get((key, is_sent))
        return dict(self._by_key[key] if found is None else found)

    def fields_of(self, annotation: Any) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """The schemas of the fields of a type, and the names of those that are required."""
        component = self.of(annotation)
        if "$ref" in component:
            component = self.components[component["$ref"].removeprefix(_PREFIX)]
        return component.get("properties", {}), component.get("required", [])

    def _add(self, components: dict[str, Any]) -> None:
        """Add components of pydantic's; those whose names are taken by others get new ones."""
        names = {name: name for name in components}
        for name in components:
            while names[name] in self.components:
                names[name] += "_"
        renamed = {_PREFIX + old: _PREFIX + new for old, new in names.items() if old != new}
        if renamed:
            components = _with_references(components, renamed)
            self._by_mode = _with_references(self._by_mode, renamed)
        self.components |= {names[name]: one for name, one in components.items()}


def schema_without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The same for the schema of a field."""
    choices = schema.get("anyOf")
    if choices is None:
        return schema
    others = [one for one in choices if one != {"type": "null"}]
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    if rest.get("default", 0) is None:
        del rest["default"]
    return {**others[0], **rest} if len(others) == 1 else {**rest, "anyOf": others}


def _plain(annotation: Any) -> Any:
    return Any if annotation is MISSING else annotation


def _key(annotation: Any) -> str:
    # Annotations with constraints may not be hashable; their texts name types with their modules.
    return f"{annotation!r} {id(annotation) if isinstance(annotation, type) else ''}"


def _with_references(value: Any, renamed: dict[str, str]) -> Any:
    """A copy whose references have their new names."""
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {key: _with_references(one, renamed) for key, one in items}
    if isinstance(value, list):
        return [_with_references(one, renamed) for one in cast("list[Any]", value)]
    return renamed.get(value, value) if isinstance(value, str) else value
