"""Numbers that are none: ``NaN`` and infinities are refused wherever a type has a number.

JSON has no such numbers, JSON Schema neither, and a handler that compares or rounds one raises. msgspec makes
decimals of their names in every format, and floats in MessagePack and of texts. Types of pydantic decide
themselves (``allow_inf_nan``). Types without such a part cost nothing. Tests: ``tests/unit/test_finite.py``.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Check = Callable[[Any], None]


def checked(function: Callable[..., Any], annotation: Any, *, floats: bool) -> Callable[..., Any]:
    """What makes a value of a type, and raises ``msgspec.ValidationError`` if a number in it is not finite.

    Args:
        function: Makes it.
        annotation: The type.
        floats: Whether floats can be among them: not in JSON.
    """
    check = check_of(annotation, floats=floats)
    if check is None:
        return function

    def make(*arguments: Any, **options: Any) -> Any:
        value = function(*arguments, **options)
        check(value)
        return value

    return make


def check_of(annotation: Any, *, floats: bool) -> Check | None:
    """What raises for a value of a type with a number that is not finite; ``None``: there cannot be one."""
    import msgspec.inspect

    try:
        node: Any = msgspec.inspect.type_info(annotation)
    except TypeError:
        return None
    plan = _Plan(floats)
    if not plan.has_numbers(node):
        return None
    return lambda value: plan.check(node, value, "$")


class _Plan:
    """What of a type has to be looked at."""

    def __init__(self, floats: bool) -> None:
        self._leaves = ("DecimalType", "FloatType") if floats else ("DecimalType",)
        self._known: dict[int, bool] = {}
        self._nodes: list[Any] = []

    def has_numbers(self, node: Any) -> bool:
        """Whether a value of a type can have such a number."""
        found = self._known.get(id(node))
        if found is None:
            self._known[id(node)] = False  # a type may contain itself
            self._nodes.append(node)
            found = type(node).__name__ in self._leaves or any(map(self.has_numbers, _parts(node)))
            self._known[id(node)] = found
        return found

    def check(self, node: Any, value: Any, place: str) -> None:
        """Raise if there is one in ``value``."""
        if type(node).__name__ in self._leaves:
            return _refuse(value, place)
        for inner, part, at in _inside(node, value, place):
            if self.has_numbers(inner):
                self.check(inner, part, at)


def _inside(node: Any, value: Any, place: str) -> Iterator[tuple[Any, Any, str]]:
    """The parts of a value, each with its type and place."""
    kind = type(node).__name__
    if kind in ("Metadata", "UnionType"):
        for one in (node.type,) if kind == "Metadata" else node.types:
            yield one, value, place
    elif hasattr(node, "fields"):
        yield from _fields(node, value, place)
    elif kind == "DictType" and isinstance(value, dict):
        for key, one in cast("dict[Any, Any]", value).items():
            yield node.key_type, key, f"key in `{place}"
            yield node.value_type, one, f"{place}[...]"
    elif isinstance(value, (list, tuple, set, frozenset)):
        values = cast("tuple[Any, ...]", value)
        types = node.item_types if kind == "TupleType" else repeat(getattr(node, "item_type", None))
        for index, (one, inner) in enumerate(zip(values, types)):  # noqa: B905
            yield inner, one, f"{place}[{index}]"


def _fields(node: Any, value: Any, place: str) -> Iterator[tuple[Any, Any, str]]:
    for field in node.fields:
        at = f"{place}.{field.encode_name}"
        if isinstance(value, dict):
            yield field.type, cast("dict[str, Any]", value).get(field.name), at
        elif isinstance(value, node.cls):  # and not another member of a union
            yield field.type, getattr(value, field.name, None), at


def _parts(node: Any) -> Iterable[Any]:
    fields: Any = getattr(node, "fields", None)
    if fields is not None:
        return [one.type for one in fields]
    kept: list[Any] = [*getattr(node, "types", ()), *getattr(node, "item_types", ())]
    names = ("item_type", "key_type", "value_type", "type")
    return kept + [part for name in names if (part := getattr(node, name, None)) is not None]


def _refuse(value: Any, place: str) -> None:
    import msgspec

    # A `Decimal`; another member of a union has no such method.
    is_decimal = hasattr(value, "is_finite")
    if not (
        value.is_finite() if is_decimal else value - value == 0 if type(value) is float else True
    ):
        raise msgspec.ValidationError(f"expected a finite number - at `{place}`")
