"""JSON Schemas of annotations, made by msgspec; types with fields become components.

All annotations of a document are given at once, so that equal names of different classes are told apart.
Tests: ``tests/gateway/test_openapi.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

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
        annotations: All types that ``of`` will be asked for.
    """

    def __init__(self, annotations: Iterable[Any]) -> None:
        known = {_key(one): _plain(one) for one in annotations}
        schemas, self.components = msgspec.json.schema_components(
            [*known.values(), Problem],
            schema_hook=_foreign_schema,
            ref_template=_PREFIX + "{name}",
        )
        self._by_key = dict(zip(known, schemas, strict=False))

    def of(self, annotation: Any) -> dict[str, Any]:
        """The schema of a type; a reference if it has fields."""
        return dict(self._by_key[_key(annotation)])

    def fields_of(self, annotation: Any) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """The schemas of the fields of a type, and the names of those that are required."""
        name = self.of(annotation)["$ref"].removeprefix(_PREFIX)
        component = self.components[name]
        return component.get("properties", {}), component.get("required", [])


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


def _foreign_schema(cls: type) -> dict[str, Any]:
    """The schema of a class that msgspec does not know."""
    made = getattr(cls, "model_json_schema", None)  # pydantic
    return cast("dict[str, Any]", made()) if callable(made) else {}
