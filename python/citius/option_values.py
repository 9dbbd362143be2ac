"""Values of options: what the annotation of an option shows to be wrong is refused.

A text in place of a number ends a request hours later, ``"no"`` in place of ``False`` is true, and a text in
place of a list is one item per letter. The check reads the text of the annotation, so that an option is
described once. It knows numbers, texts, flags, functions, ``Literal``, containers of these and the classes
named below; of an annotation that has anything else, it checks nothing.
Tests: ``tests/gateway/test_option_values.py``.
"""

from __future__ import annotations

import os
from ast import literal_eval
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable

POSITIVE: Final = frozenset({
    "ttl_s", "timeout", "threads", "processes", "interpreters", "calls_max", "deadline_s", "multiple_of",
})  # fmt: skip
"""Options whose number is more than zero: with zero nothing would last, run or fit."""

SIGNED: Final = frozenset({"default", "gt", "ge", "lt", "le"})
"""Options whose number may be negative; sizes, counts and times are not."""

CHECKED: Final = frozenset({("pattern", "str"), ("dependencies", "Sequence[Depends]")})
"""Options with their annotations that are checked where they are read, by checks that say more."""

SECRET: Final = frozenset({
    "password", "token", "secret", "key", "secrets", "keys", "dsn", "url", "urls", "base_url", "proxy",
    "headers", "auth", "cookies", "params", "cert", "address",
})  # fmt: skip
"""Options whose value is not shown in messages."""


class Kind(NamedTuple):
    """A part of an annotation."""

    described: str
    is_one: Callable[[object], bool]
    fitting: frozenset[type] = frozenset()
    """Types of which every value fits, numbers that are above zero."""


def _is_whole(value: object) -> bool:
    return hasattr(type(value), "__index__") and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    if isinstance(value, (bool, str, bytes)) or not hasattr(type(value), "__float__"):
        return _is_whole(value)
    return value == value  # not NaN, to which no comparison applies


def _list_of(item: Kind | None) -> Callable[[object], bool]:
    def is_one(value: object) -> bool:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            return False
        if item is None or not isinstance(value, (list, tuple, set, frozenset)):
            return True  # an iterator is read once
        return all(map(item.is_one, cast("Iterable[object]", value)))

    return is_one


def _literal(allowed: tuple[object, ...]) -> Callable[[object], bool]:
    def is_one(value: object) -> bool:
        return any(isinstance(value, type(one)) and value == one for one in allowed)

    return is_one


def _is_object(value: object) -> bool:
    return type(value) not in _BUILT_IN


def _of(*classes: type) -> Callable[[object], bool]:
    def is_one(value: object) -> bool:
        return isinstance(value, classes)

    return is_one


_SIMPLE: Final = {
    "None": Kind("None", _of(type(None)), frozenset({type(None)})),
    "bool": Kind("True or False", _of(bool), frozenset({bool})),
    "int": Kind("a whole number", _is_whole, frozenset({int})),
    "float": Kind("a number", _is_number, frozenset({int, float})),
    "str": Kind("a text", _of(str), frozenset({str})),
    "bytes": Kind("bytes", _of(bytes, bytearray, memoryview), frozenset({bytes})),
    "os.PathLike[str]": Kind("a path", _of(os.PathLike)),
}
_PLURALS: Final = {"str": "texts", "int": "whole numbers", "float": "numbers"}
_LISTS: Final = frozenset(
    {"Sequence", "Collection", "Iterable", "Set", "list", "tuple", "set", "frozenset"}
)
_MAPPINGS: Final = frozenset({"Mapping", "MutableMapping", "dict"})


_CLASSES: Final = frozenset({
    "Authorization", "BucketStore", "Checks", "CircuitBreaker", "Client", "ClientCache", "Cluster", "Codec",
    "CookieJar", "FormLimits", "HTTPCache", "Hedge", "Limits", "OpenAPI", "Proxy", "Redis", "Retry", "Scheme",
    "SessionCookie", "SessionStore", "SharedTable", "Timeout", "Transport", "Unset", "ssl.SSLContext",
})  # fmt: skip
"""Of these an option wants an object; one with the same methods is as good, a number or a text is none."""
_ALIASES: Final = {
    "HeaderTypes": "Mapping[str, str] | Iterable[tuple[str, str]]",
    "Pairs": "Mapping[str, object] | Iterable[tuple[str, object]]",
    "WhenDown": "Literal['local', 'allow', 'refuse']",
}
"""Names that modules give to annotations."""
_BUILT_IN: Final = frozenset(
    {bool, int, float, str, bytes, list, tuple, dict, set, frozenset, type(None), object}
)


def kinds_of(name: str, annotation: object) -> list[Kind]:
    """What the option of this name and annotation may be; nothing if that is not known."""
    if not isinstance(annotation, str) or (name, annotation) in CHECKED:
        return []
    found: list[Kind] = []
    parts = [one for part in _parts(annotation) for one in _parts(_ALIASES.get(part, part))]
    for part in parts:
        kind = _SIMPLE.get(part) or _kind_of_container(part)
        if kind is None:
            return []
        found.append(kind)
    return found


def _kind_of_container(part: str) -> Kind | None:
    outer, _, inner = part.removesuffix("]").partition("[")
    if outer == "Literal":
        allowed = literal_eval(f"({inner},)")
        return Kind(" or ".join(map(repr, allowed)), _literal(allowed))
    if outer in _LISTS:
        item = _SIMPLE.get(inner.removesuffix(", ...")) or _kind_of_class(inner)
        of = "".join(f" of {plural}" for one, plural in _PLURALS.items() if _SIMPLE[one] is item)
        return Kind(f"a list{of}", _list_of(item))
    if outer == "Callable":
        return Kind("a function", callable)
    return Kind("a mapping", _of(Mapping)) if outer in _MAPPINGS else _kind_of_class(part)


def _kind_of_class(part: str) -> Kind | None:
    name = part.partition("[")[0]
    if name not in _CLASSES:
        return None
    article = "an" if name[0] in "AEIO" or name.startswith("HTTP") else "a"
    return Kind(f"{article} {name}", _is_object)


def _parts(annotation: str) -> list[str]:
    """What stands between the bars of a union."""
    found, depth = [""], 0
    for letter in annotation:
        depth += (letter == "[") - (letter == "]")
        if letter == "|" and not depth:
            found.append("")
        else:
            found[-1] += letter
    return [part.strip() for part in found]


def fitting_types(kinds: list[Kind]) -> frozenset[type]:
    """Types of which every value fits one of the kinds: most values are of one of them."""
    found: frozenset[type] = frozenset()
    return found.union(*(kind.fitting for kind in kinds))


def mistake(name: str, value: object, kinds: list[Kind]) -> str:
    """Why an option cannot have this value; empty if it can."""
    if not kinds:
        return ""
    if not any(kind.is_one(value) for kind in kinds):
        got = f"a {type(value).__name__}" if name in SECRET else repr(value)
        what = " or ".join(dict.fromkeys(kind.described for kind in kinds))
        is_lone = isinstance(value, str) and what.startswith("a list")
        return f"{name}= is {what}, {f'{name}=[{got}], ' if is_lone else ''}got {got}"
    number: Any = value
    if not isinstance(value, (int, float)) or name in SIGNED:
        return ""
    if name in POSITIVE and number <= 0:
        return f"{name} must be more than 0, got {value!r}"
    if number < 0:
        return f"{name} must be at least 0, got {value!r}"
    return ""
