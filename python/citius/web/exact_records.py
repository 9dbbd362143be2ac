"""Objects in a value of a declared type that are of other classes than it says: a type in, a check out.

A Struct ``Page`` with ``items: list[Product]`` may hold objects of a class that extends ``Product``, whose
further fields are not to be sent. The check says whether all records in a value are of exactly the declared
classes. It is made once per route, and looks at no field that cannot hold a record.
Tests: ``tests/gateway/test_results.py``.
"""

from __future__ import annotations

import types
from typing import (
    TYPE_CHECKING,
    Any,
    TypeAlias,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from citius.web.annotations import has_fields, is_typed_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Check: TypeAlias = Callable[[Any], bool]


def exactness(model: Any) -> Check | None:
    """Whether the records in a value of a type are of the declared classes; ``None`` if it holds none.

    The value itself is one of the type, as ``msgspec.convert`` returns it.
    """
    reader = _Reader()
    return reader.fields(model) if has_fields(model) else reader.check(model)


class _Exact:
    """Whether a value is of exactly the class that a type names, and what is in it too.

    Attributes:
        records: The classes of records that the value may be of, with the checks of their fields.
        others: Checks of dictionaries, lists and the like that it may be as well.
        plain: The classes whose objects need no second look.
    """

    __slots__ = ("others", "plain", "records")

    def __init__(self, records: dict[type, Check | None], others: list[Check]) -> None:
        self.records = records
        self.others = others
        self.plain = {cls for cls, inner in records.items() if inner is None}

    def __call__(self, value: Any) -> bool:
        cls = cast("type[Any]", type(value))
        if cls in self.records:
            inner = self.records[cls]
            return inner is None or inner(value)
        if self.records and has_fields(cls):
            return False
        return all(other(value) for other in self.others)


class _Reader:
    """Reads types.

    A class may hold objects of its own: ``_read`` has the check of each class whose fields were read, and the
    check of a class that is still being read looks into it when it is called.
    """

    def __init__(self) -> None:
        self._read: dict[Any, Check | None] = {}

    def check(self, annotation: Any) -> _Exact | None:
        """The check of values of a type, if they can be or hold records."""
        records: dict[type, Check | None] = {}
        others: list[Check | None] = []
        for one in _members(annotation):
            cls: Any = get_origin(one) or one
            if not has_fields(one):
                others.append(self._of_items(one))
            elif is_typed_dict(cls):
                others.append(self._of_typed_dict(one))
            else:
                records[cls] = self.fields(one)
        found = [one for one in others if one is not None]
        return _Exact(records, found) if records or found else None

    def fields(self, cls: Any) -> Check | None:
        """Whether the records in the fields of an object are of the declared classes."""
        if cls in self._read:
            return self._read[cls]
        self._read[cls] = lambda value: (found := self._read[cls]) is None or found(value)
        checks = {name: self.check(one) for name, one in _hints(cls).items()}
        pairs = [(name, one) for name, one in checks.items() if one is not None]

        def is_exact(value: Any) -> bool:
            return all(one(getattr(value, name)) for name, one in pairs)

        self._read[cls] = is_exact if pairs else None
        return self._read[cls]

    def _of_typed_dict(self, cls: Any) -> Check:
        checks = {name: self.check(one) for name, one in _hints(cls).items()}

        def is_exact(value: Any) -> bool:
            if not isinstance(value, dict):
                return True
            items = cast("dict[str, Any]", value).items()
            return all(
                name in checks and ((one := checks[name]) is None or one(item))
                for name, item in items
            )

        return is_exact

    def _of_items(self, annotation: Any) -> Check | None:
        """Whether the records in a list, tuple, set or dictionary are of the declared classes."""
        container: Any = get_origin(annotation)
        arguments = get_args(annotation)
        if container not in (list, tuple, set, frozenset, dict):
            return None
        kinds = arguments[1:] if container is dict else arguments
        one = self.check(Union[tuple(kinds)])  # noqa: UP007
        if one is None:
            return None
        plain, kind = one.plain, cast("type[Any]", container)

        def is_exact(value: Any) -> bool:
            if not isinstance(value, kind):
                return True
            items = cast("Iterable[Any]", value.values() if kind is dict else value)
            return plain.issuperset(map(type, items)) or all(map(one, items))

        return is_exact


def _members(annotation: Any) -> Iterator[Any]:
    """The types that a type may be."""
    if hasattr(annotation, "__metadata__"):  # Annotated
        yield from _members(annotation.__origin__)
    elif get_origin(annotation) in (Union, types.UnionType):
        for one in get_args(annotation):
            yield from _members(one)
    else:
        yield annotation


def _hints(cls: Any) -> dict[str, Any]:
    """The types of the fields of a class, which may be generic."""
    origin = get_origin(cls) or cls
    try:
        hints = get_type_hints(origin)
    except (
        NameError
    ):  # of a name that is known to type checkers alone; msgspec cannot convert to it either
        return {}
    given = dict(zip(getattr(origin, "__parameters__", ()), get_args(cls), strict=False))
    return {name: _given(hint, given) for name, hint in hints.items()}


def _given(hint: Any, given: dict[Any, Any]) -> Any:
    """A type with the type variables replaced by what a generic class was given for them."""
    if isinstance(hint, TypeVar):
        return given.get(hint, Any)
    parameters = getattr(hint, "__parameters__", ())
    return (
        hint[tuple(given.get(one, Any) for one in parameters)]
        if parameters and get_origin(hint)
        else hint
    )
