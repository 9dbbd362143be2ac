"""Mistakes: a value that does not match its type in, every mistake with its place out.

msgspec stops at the first mistake, which is right for requests that are valid. This is the second, slow
pass: it runs only after msgspec has refused a value, walks the value along its type, and has msgspec check
each part alone. Its texts are for clients of the application: JSON's names of types, not Python's.

A mistake is ``{"in": "body", "pointer": "#/items/1/name", "detail": "expected a string, got an integer"}``:
the part of the request, a JSON pointer into it (RFC 6901, in the form of RFC 9457 §3), and what is wrong.
Tests: ``tests/unit/test_mistakes.py``.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast

from citius.web.declarations.type_checks import Trial, refused_classes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MISTAKES_MAX = 100
"""Mistakes that one response lists. Origin: enough for a form. Exceeded: the others are not looked for.
Test: tests/unit/test_mistakes.py."""

CHECKS_MAX = 10_000
"""Values that the second pass looks at. Origin: some 50 ms. Exceeded: what follows is not looked at, and if
nothing was found until then, the first mistake is told alone. Test: tests/unit/test_mistakes.py."""

Trials = dict[int, Trial]
"""What tries parts of a type, by the identity of their nodes."""

Places = tuple[str, ...]
"""Names and indices from the root of a value to a part of it."""


def mistake(place: str, path: Places, detail: str) -> dict[str, str]:
    """One mistake, as problem details list it."""
    pointer = "#"
    for name in map(str, path):  # MessagePack has keys that are no text
        if "~" in name or "/" in name:
            name = name.replace("~", "~0").replace("/", "~1")
        pointer = f"{pointer}/{name}"
    return {"in": place, "pointer": pointer, "detail": detail}


def find_mistakes(
    value: Any, annotation: Any, error: Exception, place: str, *, path: Places = (), strict: bool
) -> list[dict[str, str]]:
    """Every mistake in ``value``, at most ``MISTAKES_MAX``.

    Args:
        value: What the client sent, made of dictionaries, lists and plain values.
        annotation: The type it should have.
        error: What msgspec said about it; that is the only mistake if the walk finds none.
        place: The part of the request, such as ``query``.
        path: Where ``value`` is in that part.
        strict: Whether texts are not converted to numbers and the like.
    """
    found: list[tuple[Places, str]] = []
    try:
        node, trials = _nodes_of(annotation, strict)
        _Walk(strict=strict, found=found, trials=trials).check(node, value, path)
    except (TypeError, RecursionError):
        found.clear()  # msgspec's own words are left
    if not found:
        found.append(_said(error, path, strict=strict))
    return [mistake(place, at, detail) for at, detail in found[:MISTAKES_MAX]]


class _Walk:
    """One pass over a value."""

    def __init__(self, *, strict: bool, found: list[tuple[Places, str]], trials: Trials) -> None:
        self._strict = strict
        self._trials = trials
        self._found = found
        self._left = CHECKS_MAX

    def check(self, node: Any, value: Any, path: Places) -> None:
        """Note the mistakes in ``value``, which should be of the type ``node``."""
        self._left -= 1
        if self._is_over:
            return
        kind = type(node).__name__
        if kind == "Metadata":
            node = node.type
            kind = type(node).__name__
        if kind == "UnionType":
            node = _member(node, value)
            kind = type(node).__name__
        item = getattr(node, "item_type", None)
        # Most parts are right: what has none, and a list of such, is seen by msgspec before anything else.
        if kind in _LEAVES:
            return self._check_whole(node, value, path)
        if type(item).__name__ in _LEAVES and self._refusal(node, value) is None:
            return
        before = len(self._found)
        for inner, part, name in _parts(node, kind, value, self._trials):
            if inner is None:
                self._found.append(((*path, name), part))
            else:
                self.check(inner, part, (*path, name))
            if self._is_over:
                return
        if len(self._found) == before:
            self._check_whole(node, value, path)

    @property
    def _is_over(self) -> bool:
        return self._left < 0 or len(self._found) >= MISTAKES_MAX

    def _check_whole(self, node: Any, value: Any, path: Places) -> None:
        """Note what is wrong with a value whose parts are right: type, range, number of items."""
        trial = self._trial(node)
        if trial.fits(value):
            return
        detail = trial.texts.get(value.__class__)
        if detail is not None:
            self._found.append((path, detail))
            return
        error = trial.error(value)
        if error is not None:
            at, detail = _said(error, path, strict=self._strict)
            self._found.append((at, _allowed(node) or detail))

    def _refusal(self, node: Any, value: Any) -> Exception | None:
        return self._trial(node).error(value)

    def _trial(self, node: Any) -> Trial:
        trial = self._trials.get(id(node))
        if trial is None:
            texts = _texts_of(node) if self._strict else None
            trial = Trial(node, _annotation_of(node), strict=self._strict, texts=texts)
            self._trials[id(node)] = trial
        return trial


def _parts(node: Any, kind: str, value: Any, trials: Trials) -> Iterable[tuple[Any, Any, str]]:
    """The parts of a value: type, part, and name; or ``None``, what is wrong, and the name."""
    if kind in _RECORDS:
        if isinstance(value, dict) and not getattr(node, "array_like", False):
            return _fields(node, cast("dict[str, Any]", value), trials)
        return ()
    return _items(node, kind, value)


def _items(node: Any, kind: str, value: Any) -> Iterator[tuple[Any, Any, str]]:
    if kind == "DictType":
        if isinstance(value, dict):
            for key, part in cast("dict[Any, Any]", value).items():
                yield node.value_type, part, str(key)
    elif kind == "TupleType":
        items = cast("list[Any]", value)
        if isinstance(value, list) and len(items) == len(node.item_types):
            for index, part in enumerate(items):
                yield node.item_types[index], part, str(index)
    elif hasattr(node, "item_type") and isinstance(value, list):
        for index, part in enumerate(cast("list[Any]", value)):
            yield node.item_type, part, str(index)


def _fields(node: Any, value: dict[str, Any], trials: Trials) -> Iterator[tuple[Any, Any, str]]:
    """The parts of a record, but for those that are right by what is known of their types."""
    for field in node.fields:
        name = field.encode_name
        if name not in value:
            if field.required:
                yield None, "missing", name
            continue
        part, trial = value[name], trials.get(id(field.type))
        if trial is None or not trial.fits(part):
            yield field.type, part, name
    if getattr(node, "forbid_unknown_fields", False):
        known = {field.encode_name for field in node.fields}
        for name in value.keys() - known - {node.tag_field}:
            yield None, "unknown field", name


def _member(union: Any, value: Any) -> Any:
    """The type of a union that a value is meant to be; the union itself if that is not clear."""
    import msgspec.inspect as types

    others = [one for one in union.types if not isinstance(one, types.NoneType)]
    if len(others) == 1:
        return others[0]
    records = [one for one in union.types if hasattr(one, "fields")]
    tagged = [one for one in records if getattr(one, "tag_field", None) is not None]
    if isinstance(value, dict) and records:
        sent = cast("dict[str, Any]", value)
        meant = [one for one in tagged if sent.get(one.tag_field) == one.tag]
        meant = meant or ([] if tagged else records)
        return meant[0] if len(meant) == 1 else union
    if isinstance(value, list):
        arrays = [one for one in union.types if hasattr(one, "item_type")]
        return arrays[0] if len(arrays) == 1 else union
    return union


def _allowed(node: Any) -> str | None:
    """What an enumeration or a literal accepts."""
    import msgspec.inspect as types

    if isinstance(node, types.EnumType):
        values: list[Any] = [member.value for member in node.cls]
    elif isinstance(node, types.LiteralType):
        values = list(node.values)
    else:
        return None
    return f"expected one of {', '.join(map(repr, values[:20]))}"


def _texts_of(node: Any) -> dict[type, str]:
    """What is wrong with values of classes that a type never takes."""
    allowed = _allowed(node)
    expected = _WORDS.get(type(node).__name__.removesuffix("Type").lower())
    return {
        cls: allowed or f"expected {expected}, got {_CLASS_WORDS[cls]}"
        for cls in refused_classes(node)
    }


def _nodes_of(annotation: Any, strict: bool) -> tuple[Any, Trials]:
    try:
        return _read(annotation, strict)
    except TypeError:  # an annotation that cannot be hashed, or that is no type
        return _read.__wrapped__(annotation, strict)


@functools.cache
def _read(annotation: Any, strict: bool) -> tuple[Any, Trials]:
    """What msgspec knows of a type, and what tries parts of it by the identity of their nodes.

    Kept, because clients make the same mistakes again and again; there are as many as routes declare.
    """
    import msgspec.inspect

    return msgspec.inspect.type_info(annotation), {}


def _annotation_of(node: Any) -> Any:
    """The annotation that a node of ``msgspec.inspect`` was made of, with its constraints."""
    import msgspec
    import msgspec.inspect as types

    kind = cast("Any", type(node))
    if kind is types.Metadata:
        return _annotation_of(node.type)
    if kind is types.UnionType:
        return Union[tuple(_annotation_of(one) for one in node.types)]  # noqa: UP007
    if kind is types.LiteralType:
        return Literal[node.values]
    if kind is types.TupleType:
        return tuple[tuple(_annotation_of(one) for one in node.item_types)]
    plain: Any = _plain().get(kind.__name__) or getattr(node, "cls", Any)
    if kind is types.DictType:
        plain = dict[_annotation_of(node.key_type), _annotation_of(node.value_type)]
    elif hasattr(node, "item_type"):
        plain = _array_of(kind.__name__, _annotation_of(node.item_type))
    said = {name: getattr(node, name, None) for name in _CONSTRAINTS}
    given = {name: value for name, value in said.items() if value is not None}
    return Annotated[plain, msgspec.Meta(**given)] if given else plain


def _array_of(kind: str, item: Any) -> Any:
    if kind == "VarTupleType":
        return tuple[item, ...]
    return {"SetType": set, "FrozenSetType": frozenset}.get(kind, list)[item]


@functools.cache
def _plain() -> dict[str, Any]:
    import datetime
    from decimal import Decimal
    from uuid import UUID

    return {
        "NoneType": None.__class__, "BoolType": bool, "IntType": int, "FloatType": float,
        "StrType": str, "BytesType": bytes, "ByteArrayType": bytearray, "UUIDType": UUID,
        "DecimalType": Decimal, "DateTimeType": datetime.datetime, "DateType": datetime.date,
        "TimeType": datetime.time, "TimeDeltaType": datetime.timedelta,
    }  # fmt: skip


_RECORDS = frozenset(("StructType", "DataclassType", "TypedDictType"))

_LEAVES = frozenset(
    f"{name}Type"
    for name in (
        "None", "Bool", "Int", "Float", "Str", "Bytes", "ByteArray", "UUID", "Decimal", "DateTime", "Date",
        "Time", "TimeDelta", "Enum", "Literal",
    )
)  # fmt: skip
"""Nodes of ``msgspec.inspect`` whose values have no parts."""

_CONSTRAINTS = (
    "gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz",
)  # fmt: skip


# --- texts ----------------------------------------------------------------------------------------


def _said(error: Exception, path: Places, *, strict: bool) -> tuple[Places, str]:
    """What msgspec says, split into where and what, in the words of clients."""
    message, _, at = str(error).partition(" - at ")
    if message.startswith(
        "cannot use "
    ):  # CPython 3.14 on an element that cannot be hashed: … (why)
        message = message.partition("(")[2].rstrip(")")
    name = message.split("`")[1] if message.startswith("Object ") and "`" in message else None
    path = (*path, *_path_of(at), *(() if name is None else (name,)))
    return path, _worded(message, strict=strict)


def _path_of(said: str) -> Places:
    """``(items, 1, name)`` of ``$.items[1].name``, as msgspec writes places."""
    inner = said.strip("`").removeprefix("key in `").removeprefix("$")
    if not inner:
        return ()
    names = inner.replace("[", ".").replace("]", "").split(".")
    return tuple(name for name in names if name and name != "...")


def _worded(message: str, *, strict: bool) -> str:
    if message.startswith("Object missing"):
        return "missing"
    if message.startswith("Object contains unknown"):
        return "unknown field"
    head, *quoted = message.split("`")
    if head != "Expected " or len(quoted) < 2:
        return _MESSAGES.get(message, message[:1].lower() + message[1:])
    expected = " or ".join(_WORDS.get(word, word) for word in quoted[0].split(" | "))
    rest = quoted[1]
    if rest == ", got " and len(quoted) > 2:
        # All that a query or a header can bring is text: there is nothing to be said about it.
        rest = f", got {_WORDS.get(quoted[2], quoted[2])}" if strict else ""
    return f"expected {expected}{rest}"


_WORDS = {
    "int": "an integer", "float": "a number", "bool": "true or false", "str": "a string",
    "null": "null", "object": "an object", "array": "an array", "bytes": "binary data",
    "datetime": "a date and time", "date": "a date", "time": "a time", "duration": "a duration",
    "timedelta": "a duration", "uuid": "a UUID", "decimal": "a decimal number",
}  # fmt: skip

_CLASS_WORDS = {
    cls: _WORDS["null" if cls is type(None) else cls.__name__]
    for cls in (int, float, str, bool, type(None))
}

_MESSAGES = {
    "Invalid RFC3339 encoded datetime": "expected a date and time (RFC 3339)",
    "Invalid RFC3339 encoded date": "expected a date (RFC 3339)",
    "Invalid RFC3339 encoded time": "expected a time (RFC 3339)",
    "Invalid ISO8601 duration": "expected a duration (ISO 8601)",
    "Invalid UUID": "expected a UUID",
    "Cannot hash a signaling NaN value": "expected decimal numbers, got a signaling NaN",
    "Invalid decimal string": "expected a decimal number",
    "Invalid base64 encoded string": "expected base64 text",
}
