"""Copies of records with the fields that a type declares, and no others: a type in, a function out.

A handler that declares ``Product`` may return an object of a class that extends it, or a list of such
objects. The function returns what is of exactly the declared classes as it is, and copies the rest. It knows
msgspec Structs, and lists, dictionaries and unions of them. Of what it does not know, and of what is not of
the declared shape, it says `Unfit`: ``msgspec.convert`` accepts more, and says what is wrong (results.py).
``node_of`` describes the same types to the extension, which writes JSON without a copy.
Tests: ``tests/gateway/test_copies.py``.
"""

from __future__ import annotations

from keyword import iskeyword
from operator import is_
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from citius.web.binding.generated import make_function

if TYPE_CHECKING:
    from collections.abc import Callable

    Copier: TypeAlias = Callable[[Any], Any]


class Unfit(Exception):
    """A value, or a type, that needs another way."""


def copier(model: Any) -> Copier | None:
    """A function that makes values be of a type; ``None`` if the type holds no records, or needs another way.

    It raises `Unfit` for a value that does, and ``AttributeError`` for an object that lacks a field.
    """
    import msgspec.inspect

    try:
        return _of(msgspec.inspect.type_info(model), ())
    except Unfit:
        return None


def node_of(model: Any) -> tuple[Any, ...] | None:
    """A type as ``_core.DeclaredResponse`` takes it, which encodes values without a copy.

    ``None`` if the type holds no records, or needs another way.
    """
    import msgspec.inspect

    if copier(model) is None:
        return None
    try:
        return _node_of(msgspec.inspect.type_info(model))
    except Unfit:
        return None


def _node_of(node: Any) -> tuple[Any, ...]:
    import msgspec.inspect as inspect

    from citius.web.responses.declared.plain_parts import check_of, is_leaf, is_plain

    if isinstance(node, inspect.StructType):
        return _node_of_struct(node)
    if isinstance(node, inspect.ListType):
        return "list", _node_of(node.item_type)
    if isinstance(node, inspect.DictType):
        return "dict", _node_of(node.value_type)
    if isinstance(node, inspect.Metadata):
        return _node_of(node.type)
    if isinstance(node, inspect.EnumType) and len(node.cls) <= _MEMBERS_MAX:
        return "enumeration", [(one, _json(one)) for one in node.cls]
    if isinstance(node, inspect.UnionType) and _of(node, ()) is not None:
        return "union", [_node_of(one) for one in node.types if isinstance(one, inspect.StructType)]
    check = check_of(node)
    if check is None:
        return ("any",)
    if check in (is_leaf, is_plain):
        return ("leaf",) if check is is_leaf else ("plain",)
    raise Unfit


def _node_of_struct(node: Any) -> tuple[Any, ...]:
    settings = node.cls.__struct_config__
    if settings.array_like or settings.omit_defaults:
        raise Unfit
    head = b"{" if node.tag_field is None else _json({node.tag_field: node.tag})[:-1]
    fields: list[tuple[str, bytes, tuple[Any, ...]]] = []
    for field in node.fields:
        comma = b"," if fields or node.tag_field is not None else b""
        key = b"%b%b:" % (comma, _json(field.encode_name))
        fields.append((field.name, key, _node_of(field.type)))
    return "record", node.cls, head, fields


def _json(value: object) -> bytes:
    from citius.web.declarations.codecs import encode_json

    return encode_json(value)


_MEMBERS_MAX = 32
"""Members of an enumeration that are compared with a value one by one."""


def _of(node: Any, outer: tuple[int, ...]) -> Copier | None:
    """The copier for a node of a type; ``None`` if its values hold no records."""
    import msgspec.inspect as inspect

    if id(node) in outer:
        raise Unfit  # a class whose objects hold objects of it
    outer = (*outer, id(node))
    if isinstance(node, inspect.StructType):
        return _of_struct(node, outer)
    if isinstance(node, inspect.ListType):
        return _of_list(_of(node.item_type, outer))
    if isinstance(node, inspect.DictType):
        return _of_dict(_of(node.value_type, outer))
    if isinstance(node, inspect.UnionType):
        return _of_union(node, outer)
    if isinstance(node, inspect.Metadata):
        return _of(node.type, outer)
    inner = [getattr(node, "item_type", None), *getattr(node, "item_types", ())]
    if hasattr(node, "fields") or any(one is not None and _of(one, outer) for one in inner):
        raise Unfit
    return None


def _of_struct(node: Any, outer: tuple[int, ...]) -> Copier:
    cls = node.cls
    if not isinstance(cls, type) or hasattr(cls, "__post_init__"):
        raise Unfit  # a generic class with arguments; one that makes something of its fields
    if any(iskeyword(field.name) for field in node.fields):
        raise Unfit  # as `msgspec.defstruct` takes them
    names: dict[str, Any] = {"cls": cls, "Unfit": Unfit}
    copies: list[str] = []
    given: list[str] = []
    same = ["type(value) is cls"]
    for number, field in enumerate(node.fields):
        name, copy = field.name, _of(field.type, outer)
        if copy is None:
            given.append(f"{name}=value.{name}")
            continue
        names[f"copy{number}"] = copy
        copies.append(f"v{number} = copy{number}(value.{name})")
        same.append(f"v{number} is value.{name}")
        given.append(f"{name}=v{number}")
    lines = [
        "if not isinstance(value, cls):",
        "    raise Unfit",
        *copies,
        f"if {' and '.join(same)}:",
        "    return value",
        f"return cls({', '.join(given)})",
    ]
    source = "\n    ".join(["def copy(value):", *lines]) + "\n"
    return make_function("copy", source, names, f"copy of {cls.__qualname__}")


def _of_list(copy: Copier | None) -> Copier | None:
    if copy is None:
        return None

    def copy_list(value: Any) -> Any:
        if type(value) is not list:
            raise Unfit
        items = cast("list[Any]", value)
        made = [copy(one) for one in items]
        return items if all(map(is_, made, items)) else made

    return copy_list


def _of_dict(copy: Copier | None) -> Copier | None:
    if copy is None:
        return None

    def copy_dict(value: Any) -> Any:
        if type(value) is not dict:
            raise Unfit
        items = cast("dict[Any, Any]", value)
        made = {key: copy(one) for key, one in items.items()}
        return items if all(map(is_, made.values(), items.values())) else made

    return copy_dict


def _of_union(node: Any, outer: tuple[int, ...]) -> Copier | None:
    import msgspec.inspect as inspect

    copiers = [(one, _of(one, outer)) for one in node.types]
    records = {
        one.cls: copy for one, copy in copiers if isinstance(one, inspect.StructType) and copy
    }
    if len(records) != sum(copy is not None for _, copy in copiers):
        raise Unfit  # a list or a dictionary of records, too
    if not records:
        return None
    only = next(iter(records.values())) if len(records) == 1 else None

    def copy_one(value: Any) -> Any:
        if value is None:
            return None
        copy = records.get(cast("Any", type(value)), only)
        if copy is None:
            raise Unfit
        return copy(value)

    return copy_one
