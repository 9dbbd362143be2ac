"""Filters of responses: a declared type in, a function out that keeps the declared fields of a value.

The function gives what can be encoded: dictionaries, lists and plain values. It knows every kind of type
(type_kinds.py), types of msgspec and of pydantic in one another, and unions of any members, which it tells
apart by the class of a value, else by its fields. What it cannot filter is `Unfilterable`, when the
application is frozen. results.py asks msgspec first where that knows the whole type.
Tests: ``tests/gateway/test_response_filters.py``.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections import abc, deque
from contextlib import suppress
from types import ModuleType, NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, get_origin

from citius.errors import ConfigError
from citius.records import record
from citius.web.declarations import pydantic_types
from citius.web.declarations.type_kinds import (
    TypeKind,
    bare,
    fields_of,
    has_fields,
    has_record,
    is_alias,
    is_named_tuple,
    is_pydantic_dataclass,
    is_typed_dict,
    kind_of,
    metadata_of,
    name_of,
    normal,
    walk,
)
from citius.web.responses.declared.filterable import (
    Unfilterable,
    check_filterable,
    flat_members,
    is_known_to_msgspec,
    is_open_union,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Filter = Callable[[Any], Any]


class Misfit(Exception):
    """A value that is not of the declared type."""


@record(frozen=True, slots=True)
class FieldOptions:
    """Which fields of a response are left out, and what they are called."""

    exclude_none: bool = False
    exclude_defaults: bool = False
    exclude_unset: bool = False
    by_alias: bool = True


ALL_FIELDS: Final = FieldOptions()


def has_optional_record(annotation: Any) -> bool:
    """Whether a type has a class none of whose fields is required, or its classes have one in a field."""
    return any(
        found.kind == "record" and not _has_required(found.cls)
        for found in map(kind_of, walk(annotation))
    )


def _has_required(cls: Any) -> bool:
    models: Any = getattr(cls, "__pydantic_fields__", None)
    if models is not None:
        return any(one.is_required() for one in models.values())
    if is_typed_dict(cls):
        return bool(cls.__required_keys__)
    return any(one.is_required for one in declared_fields(cls, {}))


def make_filter(annotation: Any, options: FieldOptions = ALL_FIELDS) -> Filter:
    """A function that keeps the declared fields of a value; it raises `Misfit` for a value of another type.

    Raises:
        Unfilterable: The type does not say which fields are sent.
        NameError: A name in it cannot be resolved.
    """
    check_filterable(annotation)
    if kind_of(annotation).kind == "stream" and has_record(annotation):
        raise Unfilterable(f"{annotation!r} is a stream inside of another type; declare a list")
    return _Maker(options).make(annotation)


class _Maker:
    """Makes the filters of one type; a class or an alias that contains itself has one filter."""

    def __init__(self, options: FieldOptions) -> None:
        self._options = options
        self._made: dict[Any, Filter] = {}
        self._seen: list[TypeKind] = []  # keeps their parts, whose identities are in keys

    def make(self, annotation: Any) -> Filter:
        with suppress(RecursionError):  # an alias that contains itself
            annotation = normal(annotation)
        found = kind_of(annotation)
        self._seen.append(found)
        if found.kind == "any":
            return _pass
        is_named = is_alias(annotation) or is_alias(get_origin(annotation))
        key = (repr(annotation), found.cls, *(() if is_named else map(id, found.parts)))
        if key in self._made:
            return self._made[key]
        made: list[Filter] = []
        if found.kind == "record" or is_named:
            self._made[key] = lambda value: made[0](value)  # until it is made
        made.append(self._new(annotation, found))
        self._made[key] = made[0]
        return made[0]

    def _new(self, annotation: Any, found: TypeKind) -> Filter:
        adapter = None if _is_composed(annotation, found) else _adapter(annotation)
        if adapter is not None:
            _refuse_open(annotation)
            return self._of_pydantic(adapter, found.cls)
        if found.kind == "record":
            return self._of_record(annotation, found.cls)
        if found.kind == "union":
            return self._of_union(found.parts)
        if found.kind == "array":
            return _of_array(self.make(found.parts[0]))
        if found.kind == "tuple":
            names = found.cls._fields if is_named_tuple(found.cls) else ()
            return _of_tuple([self.make(one) for one in found.parts], names)
        if found.kind == "mapping":
            return _of_mapping(self.make(found.parts[1]))
        return _of_leaf(annotation, found)

    def _of_pydantic(self, adapter: Any, cls: Any) -> Filter:
        from pydantic import ValidationError
        from pydantic_core import PydanticSerializationError

        send = pydantic_types.sender(adapter, self._options)
        fields = tuple(fields_of(cls)) if has_fields(cls) and not is_typed_dict(cls) else ()
        names = fields if is_pydantic_dataclass(cls) else ()

        def keep(value: Any) -> Any:
            if fields and not isinstance(value, (cls, abc.Mapping)):
                _check_record(value, fields)
            if names and not isinstance(value, (cls, abc.Mapping)):
                # pydantic reads attributes for models only.
                value = {name: getattr(value, name) for name in names if hasattr(value, name)}
            try:
                return send(value)
            except (ValidationError, PydanticSerializationError) as error:
                raise Misfit(str(error)) from None

        return keep

    def _of_record(self, annotation: Any, cls: Any) -> Filter:
        if self._options.exclude_unset:
            raise Unfilterable(
                f"exclude_unset=True needs to know which fields were set, which {cls.__qualname__} does not: "
                "declare a pydantic model, or use msgspec.UNSET"
            )
        types = fields_of(annotation)
        names = tuple(types)
        fields = [_field(one, self.make(types[one.name])) for one in declared_fields(cls, types)]
        settings = getattr(cls, "__struct_config__", None)
        tag = None if settings is None else settings.tag
        tag_field = None if settings is None else settings.tag_field
        skips_defaults = self._options.exclude_defaults or getattr(settings, "omit_defaults", False)
        if settings is not None and settings.array_like:
            return _of_array_like(fields, tag, names)
        skips_none, by_alias = self._options.exclude_none, self._options.by_alias

        def keep(value: Any) -> Any:
            read = _reader_of(value, names)
            kept: dict[Any, Any] = {} if tag is None else {tag_field: tag}
            for field in fields:
                part = read(field)
                if part is _UNSET or part.__class__.__name__ == "UnsetType":
                    continue
                part = field.filter(part)
                if skips_none and part is None:
                    continue
                if skips_defaults and field.has_default and field.filter(field.default()) == part:
                    continue
                kept[field.sent_name if by_alias else field.name] = part
            return kept

        return keep

    def _of_union(self, members: tuple[Any, ...]) -> Filter:
        flat = flat_members(members)
        kinds = [kind_of(one) for one in flat]
        fallback = _pass if any(one.kind == "any" for one in kinds) else None
        each = [(kind, self.make(one)) for one, kind in zip(flat, kinds, strict=True)]
        records = [(kind.cls, keep) for kind, keep in each if kind.kind == "record"]
        tuples = [(kind.cls, keep) for kind, keep in each if is_named_tuple(kind.cls)]
        arrays = [keep for kind, keep in each if kind.kind in ("array", "tuple")]
        mappings = [keep for kind, keep in each if kind.kind == "mapping"]
        names = [{*fields_of(cls)} for cls, _ in records] if fallback is not None else []
        leaves = [one for one, kind in zip(flat, kinds, strict=True) if kind.kind == "plain"]
        leaf = [self.make(one) for one in leaves]

        def keep(value: Any) -> Any:
            if value is None and NoneType in leaves:
                return None
            for cls in type(value).__mro__:
                exact = [keep for one, keep in (*records, *tuples) if one is cls]
                if exact:
                    return _first(exact, value)
            if isinstance(value, _SCALARS):
                tried = leaf
            elif isinstance(value, abc.Mapping):
                tried = [*mappings, *_by_tag(records, value)]
                if fallback is not None and not any(fields & value.keys() for fields in names):
                    tried = mappings
            elif isinstance(value, _ARRAYS):
                tried = arrays
            else:
                tried = [*leaf, *_by_fields(records, value)]
            if fallback is not None:
                tried = [*tried, fallback]
            return _first(tried, value)

        return keep


def _is_composed(annotation: Any, found: TypeKind) -> bool:
    """Whether the filter of a type is made of those of its parts, although pydantic may know the whole.

    pydantic sends all of an object of a union with ``Any``, reads no attributes for its dataclasses, and
    makes a model that needs no field of any object.
    """
    if found.kind not in ("array", "tuple", "mapping", "union") or metadata_of(annotation):
        return False
    kinds = [kind_of(one) for one in walk(annotation, into=lambda record: False)]
    return any(
        is_open_union(one)
        or is_pydantic_dataclass(one.cls)
        or (one.kind == "record" and not _has_required(one.cls))
        for one in kinds
    )


def _first(filters: list[Filter], value: Any) -> Any:
    """What the first filter gives that takes a value."""
    said: list[str] = []
    for keep in filters:
        try:
            return keep(value)
        except Misfit as error:
            said.append(str(error))
    raise Misfit("; ".join(said) or f"a {type(value).__qualname__} is none of its members")


def _by_tag(records: list[tuple[Any, Filter]], value: Any) -> list[Filter]:
    """Filters of records for a dictionary: the one that its tag names, else those with most of its keys."""
    tagged = [
        keep
        for cls, keep in records
        if (settings := getattr(cls, "__struct_config__", None)) is not None
        and settings.tag_field is not None
        and value.get(settings.tag_field) == settings.tag
    ]
    return tagged or _by_fields(records, value)


def _by_fields(records: list[tuple[Any, Filter]], value: Any) -> list[Filter]:
    """Filters of records, those first of whose fields a value has most."""
    keys = cast("abc.Mapping[str, Any]", value) if isinstance(value, abc.Mapping) else None

    def has(name: str) -> bool:
        return hasattr(cast("object", value), name) if keys is None else name in keys

    def shared(record: tuple[Any, Filter]) -> int:
        return -sum(map(has, fields_of(record[0])))

    return [keep for _, keep in sorted(records, key=shared)]


def _refuse_open(annotation: Any) -> None:
    """Refuse a type variable that a generic class leaves open: pydantic sends all of what is in its place.

    Raises:
        Unfilterable: It stands for types with fields.
    """
    for one in walk(annotation):
        is_open = isinstance(one, TypeVar) and not one.__constraints__
        if is_open and has_record(bound := bare(one)):
            raise Unfilterable(
                f"{annotation!r} leaves the type variable {one} open, in whose place pydantic sends all "
                f"fields of a value; name the type, such as …[{name_of(bound)}]"
            )


def _adapter(annotation: Any) -> Any:
    """What pydantic has for a type; ``None`` if pydantic does not know all of it, or it is msgspec's."""
    try:
        return pydantic_types.adapter_of(annotation)
    except ConfigError:
        return None


@record(frozen=True, slots=True)
class DeclaredField:
    """A field of a class."""

    name: str
    sent_name: str
    is_required: bool
    default: Callable[[], Any] | None


@record(frozen=True, slots=True)
class _Field:
    name: str
    sent_name: str
    filter: Filter
    has_default: bool
    is_required: bool
    default: Any


_UNSET: Final = object()


def _field(one: DeclaredField, keep: Filter) -> _Field:
    return _Field(
        one.name, one.sent_name, keep, one.default is not None, one.is_required, one.default
    )


def declared_fields(cls: Any, types: dict[str, Any]) -> list[DeclaredField]:
    """The fields of a class that is not pydantic's."""
    if hasattr(cls, "__struct_fields__"):
        import msgspec.structs

        return [
            DeclaredField(
                one.name, one.encode_name, one.required, _default_of(one, msgspec.NODEFAULT)
            )
            for one in msgspec.structs.fields(cls)
        ]
    if hasattr(cls, "__dataclass_fields__"):
        given = dataclasses.fields(cls)
        missing = dataclasses.MISSING
        defaults = [(one.name, _default_of(one, missing)) for one in given]
    elif hasattr(cls, "__attrs_attrs__"):
        defaults = [(one.name, _default_of_attrs(one)) for one in cls.__attrs_attrs__]
    else:
        needed = cls.__required_keys__ if is_typed_dict(cls) else types
        # Of annotations that were texts, `__required_keys__` does not know the qualifiers.
        origins = {name: getattr(get_origin(one), "_name", "") for name, one in types.items()}
        return [
            DeclaredField(name, name, name in needed and origins[name] != "NotRequired", None)
            for name in types
        ]
    return [DeclaredField(name, name, default is None, default) for name, default in defaults]


def _default_of(field: Any, missing: Any) -> Callable[[], Any] | None:
    if field.default is not missing:
        return lambda: field.default
    return None if field.default_factory is missing else field.default_factory


def _default_of_attrs(field: Any) -> Callable[[], Any] | None:
    default = field.default
    if type(default).__name__ == "Factory":
        return None if default.takes_self else default.factory
    return None if type(default).__name__ == "_Nothing" else lambda: default


def _reader_of(value: Any, names: tuple[str, ...]) -> Callable[[_Field], Any]:
    """What reads the fields of a value: keys of a dictionary, attributes of an object with one of them."""
    keys = cast("abc.Mapping[str, Any]", value)
    if isinstance(value, abc.Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__")):

        def read_key(field: _Field) -> Any:
            for name in (field.sent_name, field.name):
                try:
                    return keys[name]
                except (KeyError, IndexError):
                    continue
            return _otherwise(field, value)

        return read_key
    if value is None or isinstance(value, _SCALARS) or _is_plain_array(value):
        raise Misfit(f"expected an object with fields, got a {type(value).__qualname__}")
    _check_record(value, names)

    def read_attribute(field: _Field) -> Any:
        found = getattr(value, field.name, _UNSET)
        return _otherwise(field, value) if found is _UNSET else found

    return read_attribute


def _check_record(value: Any, names: tuple[str, ...]) -> None:
    """Refuse an object that is no record: its class has attributes that mean something else, or none.

    Raises:
        Misfit: It is a coroutine, an iterator, a function, a class, a module, or has none of these fields.
    """
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise Misfit(
            f"got a {type(value).__qualname__}, which has to be awaited: make it `async def`, or await what "
            "it calls"
        )
    if isinstance(value, (abc.Iterator, abc.AsyncIterator)):
        cls: type[Any] = type(cast("object", value))
        raise Misfit(f"expected an object with fields, got a {cls.__qualname__}")
    if isinstance(value, (type, ModuleType)) or inspect.isroutine(value):
        raise Misfit(f"expected an object with fields, got {value!r:.80}")
    if names and not any(hasattr(value, name) for name in names):
        raise Misfit(f"a {type(value).__qualname__} has none of the fields {', '.join(names)}")


def _otherwise(field: _Field, value: Any) -> Any:
    if field.default is not None:
        return field.default()
    if field.is_required:
        raise Misfit(f"a {type(value).__qualname__} without {field.name}")
    return _UNSET


_SCALARS: Final = (str, bytes, bytearray, int, float, bool, NoneType)
_ARRAYS: Final = (list, tuple, set, frozenset, deque, abc.Set, abc.Sequence, abc.ValuesView)


def _is_plain_array(value: Any) -> bool:
    """Whether this is an array; not a row of a database, which is a tuple with attributes."""
    return isinstance(value, _ARRAYS) and not hasattr(cast("object", value), "_fields")


def _of_array_like(fields: list[_Field], tag: Any, names: tuple[str, ...]) -> Filter:
    """The filter of a Struct that is an array in JSON."""

    def keep(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            given = cast("list[Any]", value)
            return [keep.filter(one) for keep, one in zip(fields, given, strict=False)]
        read = _reader_of(value, names)
        parts = [field.filter(read(field)) for field in fields]
        return parts if tag is None else [tag, *parts]

    return keep


def _of_array(keep: Filter) -> Filter:
    def keep_all(value: Any) -> Any:
        if isinstance(value, (*_SCALARS, abc.Mapping)) or not isinstance(value, abc.Iterable):
            raise Misfit(f"expected an array, got a {type(cast('object', value)).__qualname__}")
        return [keep(one) for one in cast("abc.Iterable[Any]", value)]

    return keep_all


def _of_tuple(filters: list[Filter], names: tuple[str, ...]) -> Filter:
    def keep_each(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            if not names or isinstance(value, _SCALARS):
                raise Misfit(f"expected an array, got a {type(value).__qualname__}")
            value = [getattr(value, name, None) for name in names]
        items = cast("list[Any]", value)
        if len(items) != len(filters):
            raise Misfit(f"expected an array of length {len(filters)}, got {len(items)}")
        return [keep(one) for keep, one in zip(filters, items, strict=True)]

    return keep_each


def _of_mapping(keep: Filter) -> Filter:
    def keep_values(value: Any) -> Any:
        if not isinstance(value, abc.Mapping):
            raise Misfit(f"expected an object, got a {type(value).__qualname__}")
        return {key: keep(one) for key, one in cast("abc.Mapping[Any, Any]", value).items()}

    return keep_values


def _of_leaf(annotation: Any, found: TypeKind) -> Filter:
    """The filter of a value without parts: it is checked as far as msgspec knows its type."""
    import msgspec

    if annotation is None or annotation is NoneType:
        return _of_none
    if not is_known_to_msgspec(annotation):
        return _of_other(found)
    convert: Callable[..., Any] = msgspec.convert
    exact = annotation if isinstance(annotation, type) else None

    def keep(value: Any) -> Any:
        if type(value) is exact:
            return value
        try:
            return convert(value, annotation)
        except msgspec.ValidationError as error:
            raise Misfit(str(error)) from None

    return keep


def _of_none(value: Any) -> Any:
    if value is not None:
        raise Misfit(f"expected null, got a {type(value).__qualname__}")


def _of_other(found: TypeKind) -> Filter:
    """The filter of a class that msgspec does not know, such as a path: objects with fields are refused."""
    cls = found.cls if isinstance(found.cls, type) else object

    def keep(value: Any) -> Any:
        if has_fields(type(value)) and not has_fields(cls):
            raise Misfit(f"expected a {cls.__qualname__}, got a {type(value).__qualname__}")
        if not isinstance(value, cls) and not getattr(cls, "_is_protocol", False):
            raise Misfit(f"expected a {cls.__qualname__}, got a {type(value).__qualname__}")
        return value

    return keep


def _pass(value: Any) -> Any:
    return value
