"""JSON Schemas of annotations, made by msgspec and pydantic; types with fields become components.

What neither knows as a whole, such as a Struct with a model in it, is composed of the schemas of its parts.

All annotations of a document are given at once, so that equal names of different classes are told apart.
Tests: ``tests/gateway/test_openapi.py``.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast, get_args, get_origin

import msgspec
import msgspec.inspect

from citius.errors import ConfigError
from citius.web.declarations.parameters.sources import MISSING
from citius.web.declarations.pydantic_types import adapter_of, encodable
from citius.web.declarations.pydantic_types import schemas as pydantic_schemas
from citius.web.declarations.type_kinds import TypeKind, bare, fields_of, kind_of, name_of, parts_of
from citius.web.responses.declared.filterable import is_known_to_msgspec, parts_of_node
from citius.web.responses.declared.filters import declared_fields

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

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
        self._msgspec: dict[Any, Any] = {}
        self._received: dict[Any, Any] = {}
        self._sent: dict[Any, Any] = {}
        self._composed: dict[Any, TypeKind] = {}
        self._composing: set[Any] = set()
        self._kept: list[Any] = []  # types whose identities are in keys
        for one in received:
            self._sort(_plain(one), is_sent=False)
        for one in sent:
            self._sort(_plain(one), is_sent=True)
        types = [*self._msgspec.values(), Problem]
        with _distinct_names(types), _encodable_defaults():
            schemas, self.components = msgspec.json.schema_components(
                types,
                ref_template=_PREFIX + "{name}",
                schema_hook=lambda cls: {"title": cls.__name__},
            )
        for one in self.components.values():
            for field in (*one.get("properties", {}).values(), *one.get("prefixItems", ())):
                if field.get("default") is _NOT_IN_JSON:
                    del field["default"]
        self._by_key = dict(zip(self._msgspec, schemas, strict=False))
        received_keys = {key: str(number) for number, key in enumerate(self._received)}
        sent_keys = {key: str(number) for number, key in enumerate(self._sent)}
        by_mode, components = pydantic_schemas(
            {received_keys[key]: one for key, one in self._received.items()},
            {sent_keys[key]: one for key, one in self._sent.items()},
            _PREFIX,
        )
        self._by_mode = {
            (key, is_sent): by_mode[name, is_sent]
            for is_sent, keys in ((False, received_keys), (True, sent_keys))
            for key, name in keys.items()
        }
        self._add(components)
        self._names: dict[Any, str] = {}

    def _sort(self, annotation: Any, *, is_sent: bool) -> None:
        """Note who makes the schema of a type: pydantic, msgspec, or `_compose` of its parts."""
        self._kept.append(annotation)
        key = key_of(annotation)
        adapter = _adapter_of(annotation)
        if adapter is not None:
            (self._sent if is_sent else self._received)[key] = adapter
            return
        if key in self._msgspec or key in self._composed:
            return
        found = kind_of(annotation)
        is_described = is_known(annotation)
        if found.kind in ("plain", "any", "unknown") or (
            is_described and is_known_to_msgspec(annotation)
        ):
            self._msgspec[key] = annotation if is_described else Any
            return
        self._composed[key] = found
        self._kept.append(found)
        for part in parts_of(annotation):
            self._kept.append(part)
            self._sort(part, is_sent=is_sent)

    def of(self, annotation: Any, *, is_sent: bool = False) -> dict[str, Any]:
        """The schema of a type; a reference if it has fields."""
        key = key_of(annotation)
        found = self._by_mode.get((key, is_sent))
        if found is None and key in self._composed:
            return self._compose(key, annotation, is_sent=is_sent)
        return dict(self._by_key[key] if found is None else found)

    def _compose(self, key: Any, annotation: Any, *, is_sent: bool) -> dict[str, Any]:
        """The schema of a type with parts that have schemas of their own."""
        found = self._composed[key]
        if found.kind == "record":
            return self._compose_record(key, annotation, found, is_sent=is_sent)
        if key in self._composing:
            return {}  # an alias that contains itself has no name to refer to
        self._composing.add(key)
        try:
            parts = [self.of(one, is_sent=is_sent) for one in found.parts]
        finally:
            self._composing.remove(key)
        if found.kind == "union":
            return {"anyOf": parts}
        if found.kind == "mapping":
            return {"type": "object", "additionalProperties": parts[1]}
        if found.kind == "tuple":
            places = {"prefixItems": parts, "items": False}
            return {"type": "array", "minItems": len(parts), "maxItems": len(parts), **places}
        return {"type": "array", "items": parts[0]}

    def _compose_record(
        self, key: Any, annotation: Any, found: TypeKind, *, is_sent: bool
    ) -> dict[str, Any]:
        name = self._names.get((key, is_sent))
        if name is None:
            said = name_of(bare(annotation)).rpartition(".")[2]
            name = "".join(one if one.isalnum() and one.isascii() else "_" for one in said)
            while name in self.components:
                name += "_"
            self._names[key, is_sent] = name
            made: dict[str, Any] = {"title": name, "type": "object"}
            self.components[name] = made
            types = fields_of(annotation)
            fields = declared_fields(found.cls, types)
            made["properties"] = {
                one.sent_name: self.of(types[one.name], is_sent=is_sent) for one in fields
            }
            made["required"] = [one.sent_name for one in fields if one.is_required]
        return {"$ref": _PREFIX + name}

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


_naming = threading.Lock()


@contextmanager
def _distinct_names(types: list[Any]) -> Generator[None]:
    """Give classes of one name numbers while msgspec, which knows them by their names, describes them.

    It tells those of different modules apart itself, but neither classes that a function makes again and
    again nor the arguments of generic classes.
    """
    with _naming:
        names: dict[tuple[str, str], list[Any]] = {}
        for cls, is_argument in _named_classes(types):
            module = "" if is_argument else cls.__module__
            known = names.setdefault((module, cls.__qualname__), [])
            if not any(cls is one for one in known):
                known.append(cls)
        changed: list[tuple[Any, str, str]] = []
        for known in names.values():
            for number, cls in enumerate(known[1:], 2):
                if not any(cls is one for one, _, _ in changed):
                    changed.append((cls, cls.__name__, cls.__qualname__))
                    cls.__name__, cls.__qualname__ = (
                        f"{cls.__name__}_{number}",
                        f"{cls.__qualname__}_{number}",
                    )
        try:
            yield
        finally:
            for cls, name, qualified_name in changed:
                cls.__name__, cls.__qualname__ = name, qualified_name


_NOT_IN_JSON: Final = object()
"""In place of a default of a field that JSON does not have."""


@contextmanager
def _encodable_defaults() -> Generator[None]:
    """Have msgspec describe classes with a field whose default it cannot encode; `_naming` is held."""
    from msgspec import _json_schema  # pyright: ignore[reportPrivateUsage]

    module: Any = _json_schema

    def to_builtins(value: Any, **options: Any) -> Any:
        try:
            return msgspec.to_builtins(value, enc_hook=encodable, **options)
        except (TypeError, NotImplementedError, ValueError):
            return _NOT_IN_JSON

    original, module.to_builtins = module.to_builtins, to_builtins
    try:
        yield
    finally:
        module.to_builtins = original


def _named_classes(types: list[Any]) -> Iterator[tuple[Any, bool]]:
    """The classes that get components, and whether each is an argument of a generic class."""
    seen: set[int] = set()
    waiting: list[Any] = list(msgspec.inspect.multi_type_info(types))
    while waiting:
        node = waiting.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        cls = getattr(node, "cls", None)
        if isinstance(cls, type) and not isinstance(node, msgspec.inspect.CustomType):
            yield cls, False
        for one in getattr(cls, "__args__", ()):
            if isinstance(one, type) and one.__module__ != "builtins":
                yield one, True
        waiting += parts_of_node(node)


def _adapter_of(annotation: Any) -> Any:
    try:
        return adapter_of(annotation)
    except ConfigError:
        return None  # parts of it are pydantic's


def is_known(annotation: Any) -> bool:
    """Whether msgspec has a schema of a type, if not of all its parts."""
    try:
        waiting: list[Any] = [msgspec.inspect.type_info(annotation)]
    except (TypeError, NameError, RecursionError):
        return False
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, msgspec.inspect.ExtType):
            return False
        if id(node) not in seen:
            seen.add(id(node))
            waiting += parts_of_node(node)
    return True


def schema_without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field without ``null``."""
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


def key_of(annotation: Any) -> Any:
    """What tells types apart: classes by their identity, metadata, which may not be hashable, by its text."""
    if isinstance(annotation, type) and not get_args(annotation):
        return id(annotation)
    metadata = tuple(map(repr, getattr(annotation, "__metadata__", ())))
    plain: Any = annotation
    inner: tuple[Any, ...] = (plain.__origin__,) if metadata else get_args(annotation)
    origin = get_origin(annotation)
    return (repr(annotation), id(origin), metadata, *map(key_of, inner))


def _with_references(value: Any, renamed: dict[str, str]) -> Any:
    """A copy whose references have their new names."""
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {key: _with_references(one, renamed) for key, one in items}
    if isinstance(value, list):
        return [_with_references(one, renamed) for one in cast("list[Any]", value)]
    return renamed.get(value, value) if isinstance(value, str) else value
