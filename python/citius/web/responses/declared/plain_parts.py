"""Parts for which a type declares no class with fields: a type in, a check of them out.

Classes do not check what is put into their fields. An object with fields in the place of a text would be sent
with all of them, which no type declares; ``msgspec.convert`` looks at no field of an object that is of the
declared class. What a type leaves open (``Any``) may be anything. Tests: ``tests/gateway/test_copies.py``.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import uuid
from functools import partial
from keyword import iskeyword
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, cast

from citius.web.binding.generated import make_function
from citius.web.declarations.type_kinds import is_named_tuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    Check = Callable[[Any], bool]

LEAVES: Final = frozenset((
    str, int, float, bool, NoneType, bytes, bytearray, memoryview, datetime.datetime, datetime.date,
    datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID,
))  # fmt: skip
"""Classes of values without parts."""

_SUBCLASSED: Final[tuple[type, ...]] = (enum.Enum, *(LEAVES - {bool, NoneType, memoryview}))


def is_leaf(value: object) -> bool:
    """Whether this is a value without parts."""
    if type(value) in LEAVES or isinstance(value, _SUBCLASSED):
        return True
    return type(value).__name__ == "UnsetType"


def is_plain(value: object) -> bool:
    """Whether this is a value without parts, or a container of such."""
    if type(value) in LEAVES:
        return True
    if isinstance(value, dict):
        pairs = cast("dict[object, object]", value)
        return all(map(is_plain, pairs)) and all(map(is_plain, pairs.values()))
    if isinstance(value, (list, tuple, set, frozenset)):
        items = cast("list[object]", value)
        return not is_named_tuple(type(items)) and all(map(is_plain, items))
    return is_leaf(value)


def plain_check(model: Any) -> Check | None:
    """A function that says whether parts without a class are plain; ``None`` if all of them may be anything.

    Args:
        model: A type that msgspec knows. Values are of its classes, but for what is in their fields.
    """
    import msgspec.inspect

    return check_of(msgspec.inspect.type_info(model))


def check_of(node: Any) -> Check | None:
    """The same for a type as ``msgspec.inspect`` has it: `is_leaf` and `is_plain` where it has no class."""
    return _Maker().make(node)


class _Maker:
    """Makes the checks of one type; a class that contains itself has one."""

    def __init__(self) -> None:
        self._made: dict[int, Check] = {}

    def make(self, node: Any) -> Check | None:
        import msgspec.inspect as inspect

        if isinstance(node, inspect.Metadata):
            return self.make(node.type)
        if isinstance(
            node, (inspect.AnyType, inspect.RawType, inspect.CustomType, inspect.ExtType)
        ):
            return None
        if hasattr(node, "fields"):
            return self._of_record(node)
        if isinstance(node, inspect.UnionType):
            return self._of_union([(one, self.make(one)) for one in node.types])
        if isinstance(node, inspect.DictType):
            return self._of_container(
                _values, [self.make(node.key_type), self.make(node.value_type)]
            )
        if isinstance(node, inspect.TupleType):
            return self._of_places([self.make(one) for one in node.item_types])
        if hasattr(node, "item_type"):
            return self._of_container(iter, [self.make(node.item_type)])
        return is_leaf

    def _of_record(self, node: Any) -> Check:
        if id(node) in self._made:
            return self._made[id(node)]
        made: list[Check] = []
        self._made[id(node)] = lambda value: made[0](value)  # until it is made
        checks = {
            one.name: check for one in node.fields if (check := self.make(one.type)) is not None
        }
        if type(node).__name__ == "TypedDictType":
            made.append(partial(_has_plain_items, checks))
        else:
            made.append(_check_of_object(getattr(node.cls, "__origin__", node.cls), checks))
        self._made[id(node)] = made[0]
        return made[0]

    def _of_union(self, members: list[tuple[Any, Check | None]]) -> Check | None:
        checks = [check for _, check in members]
        is_open = any(check is None for check in checks)
        records = {
            getattr(one.cls, "__origin__", one.cls): check
            for one, check in members
            if hasattr(one, "fields") and check is not None
        }
        if not records and is_open:
            return None
        if all(check is is_leaf for check in checks):
            return is_leaf
        if all(check in (is_leaf, is_plain) for check in checks):
            return is_plain
        # TypedDicts, of which a dictionary may be one or another, are among them.
        others = [check for check in checks if check is not None]

        def check(value: Any) -> bool:
            of_record = records.get(cast("Any", type(value)))
            if of_record is not None:
                return of_record(value)
            return is_open or any(one(value) for one in others)

        return check

    def _of_container(
        self, parts: Callable[[Any], Iterable[Any]], checks: list[Check | None]
    ) -> Check | None:
        if all(check in (is_leaf, is_plain) for check in checks):
            return is_plain
        check = checks[-1]
        if check is None:
            return None

        def check_all(value: Any) -> bool:
            # Other containers, and no containers, are for `msgspec.convert` to say.
            return isinstance(value, _CONTAINERS) and all(map(check, parts(value)))

        return check_all

    def _of_places(self, checks: list[Check | None]) -> Check | None:
        if all(check in (is_leaf, is_plain) for check in checks):
            return is_plain
        if all(check is None for check in checks):
            return None

        def check_each(value: Any) -> bool:
            if not isinstance(value, (tuple, list)):
                return False
            pairs = zip(checks, cast("list[Any]", value), strict=False)
            return all(check is None or check(part) for check, part in pairs)

        return check_each


def _check_of_object(cls: Any, checks: dict[str, Check]) -> Check:
    """The check of objects of a class, without calls for the usual values."""
    names: dict[str, Any] = {
        "cls": cls, "checks": checks, "has_plain_attributes": _has_plain_attributes, "leaves": LEAVES,
        "arrays": _ARRAYS, "are_leaves": LEAVES.issuperset,
    }  # fmt: skip
    lines = ["if type(value) is not cls:", "    return False"]
    for number, (name, check) in enumerate(checks.items()):
        if iskeyword(name):  # as `msgspec.defstruct` takes them
            return lambda value: type(value) is cls and _has_plain_attributes(checks, value)
        names[f"check{number}"] = check
        is_right = f"check{number}(part)"
        if check in (is_leaf, is_plain):
            is_right = f"type(part) in leaves or {is_right}"
        if check is is_plain:
            is_right = f"type(part) in arrays and are_leaves(map(type, part)) or {is_right}"
        lines += [f"part = value.{name}", f"if not ({is_right}):", "    return False"]
    body = "\n        ".join([*lines, "return True"])
    source = (
        f"def check(value):\n    try:\n        {body}\n"
        "    except AttributeError:\n        return has_plain_attributes(checks, value)\n"
    )
    made: Check = make_function("check", source, names, f"plain parts of {cls.__qualname__}")
    return made


def _has_plain_attributes(checks: dict[str, Check], value: Any) -> bool:
    """The same of an object that may lack some, which are not sent."""
    return all(check(getattr(value, name, None)) for name, check in checks.items())


def _has_plain_items(checks: dict[str, Check], value: Any) -> bool:
    return type(value) is dict and all(
        check(cast("dict[str, Any]", value).get(name)) for name, check in checks.items()
    )


_ARRAYS: Final = frozenset((list, tuple, set, frozenset))
_CONTAINERS: Final = (list, tuple, set, frozenset, dict)


def _values(value: Mapping[Any, Any]) -> Iterable[Any]:
    return value.values()
