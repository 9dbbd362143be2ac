"""Which declared types of responses can be held: a type in, refused if it does not say what is sent.

filters.py makes the filters. Tests: ``tests/gateway/test_response_filters.py``.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, Final, cast

from citius.errors import ConfigError
from citius.web.declarations import pydantic_types
from citius.web.declarations.type_kinds import (
    TypeKind,
    bare,
    has_fields,
    is_named_tuple,
    is_pydantic_dataclass,
    kind_of,
    metadata_of,
    walk,
)


class Unfilterable(Exception):
    """A type that does not say which fields are sent."""


def check_filterable(annotation: Any) -> None:
    """Refuse a type that holds records and does not say which of their fields are sent.

    Raises:
        Unfilterable: It does; the message says where.
        NameError: A name in it cannot be resolved.
    """
    try:
        pydantic_types.refuse_lost_rules(annotation)
    except ConfigError as error:
        raise Unfilterable(str(error)) from None
    for one in walk(annotation, into=lambda record: False):
        _refuse_base(one)
    for one in walk(annotation):
        found = kind_of(one)
        _refuse_value(one)
        if isinstance(found.cls, str) or type(found.cls).__name__ == "ForwardRef":
            raise Unfilterable(f"the name {found.cls!r} in it is not resolved")
        inner = [kind_of(part) for argument in found.parts for part in walk(argument)]
        if found.kind == "unknown" and any(part.kind == "record" for part in inner):
            raise Unfilterable(
                f"{one!r} does not say how its values are sent; declare a list, a dict or a class with fields"
            )
        if hasattr(found.cls, "__pydantic_fields__") and is_open(one):
            raise Unfilterable(
                f"{found.cls.__qualname__} has a field of a class or Any, of which pydantic sends everything"
            )
        if (cls := _unknown_to_pydantic(found.cls)) is not None:
            raise Unfilterable(
                f"{found.cls.__qualname__} has a field of {cls.__qualname__}, of which pydantic sends "
                "everything: make it a model or a dataclass"
            )
        is_inner = one is not annotation
        if found.kind == "stream" and is_inner and any(part.kind == "record" for part in inner):
            raise Unfilterable(f"{one!r} is a stream inside of another type; declare a list")
        if found.kind == "plain" and _has_undeclared_fields(found.cls):
            raise Unfilterable(
                f"{found.cls.__qualname__} has attributes, but is no class of records: declare a Struct, a "
                "dataclass or a model with the fields to send, as the annotation or with response="
            )


def _refuse_value(annotation: Any) -> None:
    """Refuse a value in the place of a type: ``[User]``, ``(User, int)``, ``{"a": User}``, ``User("ann")``.

    Raises:
        Unfilterable: It is one; values would be sent as they are.
    """
    value = bare(annotation)
    if isinstance(value, type):
        return
    if isinstance(value, (list, tuple, dict, set, frozenset, int, float)) or has_fields(
        type(value)
    ):
        raise Unfilterable(
            f"{value!r} is no type; write list[User], tuple[User, int], or a class with the fields to send"
        )


def _refuse_base(annotation: Any) -> None:
    """Refuse the class that all Structs, or models, extend; ``SerializeAsAny`` around it says what is sent.

    Raises:
        Unfilterable: It is one.
    """
    value = bare(annotation)
    is_base = isinstance(value, type) and (value.__module__, value.__qualname__) in _BASES
    if is_base and not metadata_of(annotation):
        raise Unfilterable(
            f"{value.__qualname__} has no fields, so that nothing would be sent: declare the class that has"
        )


_BASES: Final = (
    ("msgspec", "Struct"),
    ("pydantic.main", "BaseModel"),
    ("pydantic.root_model", "RootModel"),
)
"""Classes that others with fields extend, by module and name: neither package is imported here."""


def _unknown_to_pydantic(model: Any) -> Any:
    """A class in the fields of a model of pydantic that pydantic takes as it is: a Struct, one of attrs."""
    fields: dict[str, Any] = getattr(model, "__pydantic_fields__", {})
    for field in fields.values():
        if any(hasattr(rule, "__get_pydantic_core_schema__") for rule in field.metadata):
            continue  # a serializer, for example
        for part in walk(field.annotation, into=lambda record: False):
            cls = kind_of(part).cls
            is_foreign = hasattr(cls, "__struct_fields__") or hasattr(cls, "__attrs_attrs__")
            if is_foreign and not hasattr(cls, "__get_pydantic_core_schema__"):
                return cls
    return None


def _has_undeclared_fields(cls: Any) -> bool:
    """Whether this is a class of an application with annotated attributes that no encoder knows."""
    if not isinstance(cls, type) or cls.__module__.partition(".")[0] in _KNOWN_PACKAGES:
        return False
    found = cast("type[Any]", cls)
    if issubclass(found, (str, bytes, int, float, BaseException)) or hasattr(cls, "__iter__"):
        return False
    if hasattr(cls, "__get_pydantic_core_schema__") or hasattr(cls, "__members__"):
        return False
    bases = [base for base in found.__mro__ if base.__module__ not in ("typing", "builtins")]
    return any(map(inspect.get_annotations, bases))


_KNOWN_PACKAGES: Final = frozenset(
    (*sys.stdlib_module_names - {"__main__"}, "citius", "msgspec", "pydantic")
)


def is_known_to_msgspec(annotation: Any) -> bool:
    """Whether msgspec knows a type and all in it, so that its ``convert`` filters values of it."""
    import msgspec.inspect

    try:
        waiting: list[Any] = [msgspec.inspect.type_info(annotation)]
    except (TypeError, NameError, RecursionError):
        return False
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, msgspec.inspect.CustomType):
            return False
        if is_pydantic_dataclass(getattr(node, "cls", None)):
            return False
        if id(node) not in seen:
            seen.add(id(node))
            waiting += parts_of_node(node)
    return True


def parts_of_node(node: Any) -> list[Any]:
    """The types of a type's parts, as ``msgspec.inspect`` has them."""
    found = [getattr(node, name, None) for name in _PARTS]
    found += [*getattr(node, "types", ()), *getattr(node, "item_types", ())]
    found += [field.type for field in getattr(node, "fields", ())]
    return [one for one in found if one is not None]


_PARTS = ("type", "item_type", "key_type", "value_type")


def is_open(annotation: Any) -> bool:
    """Whether a type has a union of a class with fields and ``Any``, in a field too.

    msgspec and pydantic take such a union for ``Any``, and send all of an object of a subclass.
    """
    return any(is_open_union(kind_of(one)) for one in walk(annotation))


def is_open_union(found: TypeKind) -> bool:
    """Whether a type is such a union itself."""
    if found.kind != "union":
        return False
    members = [
        kind_of(part)
        for one in flat_members(found.parts)
        for part in walk(one, lambda record: False)
    ]
    kinds = [one.kind for one in members]
    return "any" in [kind_of(one).kind for one in flat_members(found.parts)] and (
        "record" in kinds or any(is_named_tuple(one.cls) for one in members)
    )


def flat_members(members: tuple[Any, ...]) -> list[Any]:
    """The members of a union and of unions in it."""
    found: list[Any] = []
    for one in members:
        inner = kind_of(one)
        found += (
            flat_members(inner.parts) if inner.kind == "union" and not metadata_of(one) else [one]
        )
    return found
