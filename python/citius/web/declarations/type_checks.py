"""Bounds: which values are of a type for sure, decided by their class and by what the type allows.

A part of a value that matches its type is told from one that does not without a conversion, whose exception
and reading of the type cost more than everything else of a refusal. What cannot be decided so is tried by
msgspec, with a decoder that is made once per part of a type; its words say what is wrong. Used by the second
pass over a value that msgspec has refused (mistakes.py). Tests: ``tests/unit/test_mistakes.py``.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[Any], bool]

# What msgspec takes for an integer without a look at its digits.
_INT_MIN, _INT_END = -(2**63), 2**63
_TRIED = (str, int, float, bool, type(None))


def check_of(node: Any) -> Check | None:
    """A function that says whether a value is of a type; ``False`` also of values that it does not know.

    Args:
        node: The type, as ``msgspec.inspect`` has it.

    Returns:
        ``None`` for types of which nothing can be said so.
    """
    kind = type(node).__name__
    if kind in _CLASSES and getattr(node, "multiple_of", None) is None:
        return _of_number(node, _CLASSES[kind])
    if kind == "StrType" and node.pattern is None:
        return _of_length(node, str, None)
    if kind in ("BoolType", "NoneType"):
        cls = bool if kind == "BoolType" else type(None)
        return lambda value: value.__class__ is cls
    if kind in ("EnumType", "LiteralType"):
        values = [one.value for one in node.cls] if kind == "EnumType" else node.values
        known = {(one.__class__, one) for one in values if one.__class__ in _TRIED}
        return lambda value: value.__class__ in _TRIED and (value.__class__, value) in known
    if kind == "ListType":
        inner = check_of(node.item_type)
        return None if inner is None else _of_length(node, list, inner)
    return None


def _of_number(node: Any, classes: tuple[type, ...]) -> Check:
    gt, ge, lt, le = node.gt, node.ge, node.lt, node.le

    def check(value: Any) -> bool:
        return (
            value.__class__ in classes
            and (value.__class__ is float or _INT_MIN <= value < _INT_END)
            and (gt is None or value > gt)
            and (ge is None or value >= ge)
            and (lt is None or value < lt)
            and (le is None or value <= le)
        )

    return check


def _of_length(node: Any, cls: type, inner: Check | None) -> Check:
    shortest, longest = node.min_length or 0, node.max_length
    if not shortest and longest is None:
        if inner is None:
            return lambda value: value.__class__ is cls
        return lambda value: value.__class__ is cls and all(map(inner, value))

    def check(value: Any) -> bool:
        return (
            value.__class__ is cls
            and len(value) >= shortest
            and (longest is None or len(value) <= longest)
            and (inner is None or all(map(inner, value)))
        )

    return check


def broken_limit_of(node: Any) -> Callable[[Any], str | None] | None:
    """A function that names the limit that a value is beyond, if its class is right.

    msgspec says the same of every value beyond a limit. Integers that are longer than it takes have words of
    their own.
    """
    kind = type(node).__name__
    classes = _CLASSES.get(kind)
    if classes is not None and node.multiple_of is None:
        gt, ge, lt, le = node.gt, node.ge, node.lt, node.le

        def beyond(value: Any) -> str | None:
            if value.__class__ not in classes or not _INT_MIN <= value < _INT_END:
                return None
            if (gt is not None and value <= gt) or (ge is not None and value < ge):
                return "least"
            return (
                "most"
                if (lt is not None and value >= lt) or (le is not None and value > le)
                else None
            )

        return beyond
    if kind == "StrType" and node.pattern is None:
        shortest = node.min_length or 0

        def out_of_length(value: Any) -> str | None:
            if value.__class__ is not str:
                return None
            return "least" if len(value) < shortest else "most"

        return out_of_length
    return None


class Trial:
    """msgspec's look at parts of one type.

    Args:
        node: The type, as ``msgspec.inspect`` has it.
        annotation: The type itself.
        strict: Whether texts are not converted to numbers and the like.
        texts: What is wrong with a value of a class that does not fit, where the class alone says it.

    Attributes:
        texts: The same, and what was found to be wrong with values beyond a limit.
    """

    __slots__ = ("_annotation", "_broken_limit", "_check", "_decode", "_strict", "texts")

    def __init__(
        self,
        node: Any,
        annotation: Any,
        *,
        strict: bool,
        texts: dict[type | str, str] | None = None,
    ) -> None:
        self.texts: dict[type | str, str] = texts or {}
        self._annotation, self._strict = annotation, strict
        self._check = check_of(node) if strict else None
        self._broken_limit = broken_limit_of(node) if strict else None
        self._decode: Callable[[bytes], Any] | None = None

    def fits(self, value: Any) -> bool:
        """Whether a value is of the type for sure."""
        return self._check is not None and self._check(value)

    def text_key(self, value: Any) -> type | str:
        """What the words about a value that does not fit are known by: a limit, or its class."""
        limit = None if self._broken_limit is None else self._broken_limit(value)
        return value.__class__ if limit is None else limit

    def error(self, value: Any) -> Exception | None:
        """What is wrong with a value; ``None``: it is of the type."""
        if self.fits(value):
            return None
        import msgspec

        try:
            if self._strict and _is_plain(value):
                # A decoder knows its type already; `convert` would read that again.
                decode = self._decode
                if decode is None:
                    decode = self._decode = cast(
                        "Any", msgspec.json.Decoder(self._annotation)
                    ).decode
                decode(msgspec.json.encode(value))
            else:
                msgspec.convert(value, self._annotation, strict=self._strict, str_keys=True)
        except (ValueError, ArithmeticError) as error:  # a date out of range is no ValidationError
            return error
        return None


def refused_classes(node: Any) -> tuple[type, ...]:
    """The classes of JSON's values none of which is of a type, unless it fits (`check_of`)."""
    kind = type(node).__name__
    if kind == "EnumType":
        # A class may make members of other values.
        return () if node.cls._missing_.__func__ is not enum.Enum._missing_.__func__ else _TRIED
    if kind == "LiteralType":
        return _TRIED
    taken = _CLASSES.get(kind) or {"StrType": (str,), "BoolType": (bool,)}.get(kind)
    return () if taken is None else tuple(cls for cls in _TRIED if cls not in taken)


def _is_plain(value: Any) -> bool:
    """Whether a value is the same in JSON: neither long nor infinite, and no container."""
    if value.__class__ is int:
        return _INT_MIN <= value < _INT_END
    if value.__class__ is float:
        return value - value == 0
    return value.__class__ in _TRIED


_CLASSES: dict[str, tuple[type, ...]] = {"IntType": (int,), "FloatType": (float, int)}
