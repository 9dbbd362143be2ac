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

from citius.web.declarations.type_checks import Trial, check_of, refused_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MISTAKES_MAX = 100
"""Mistakes that one response lists. Origin: enough for a form. Exceeded: the others are not looked for.
Test: tests/unit/test_mistakes.py."""

CHECKS_MAX = 10_000
"""Values that the second pass looks at. Origin: some 50 ms. Exceeded: what follows is not looked at, and if
nothing was found until then, the first mistake is told alone. Test: tests/unit/test_mistakes.py."""

Places = tuple[str, ...]
"""Names and indices from the root of a value to a part of it."""


def mistake(place: str, path: Places, detail: str) -> dict[str, str]:
    """One mistake, as problem details list it."""
    pointer = "#"
    for part in path:
        name = part if part.__class__ is str else str(part)  # MessagePack has keys that are no text
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
        _Walk(found).check(_plan_of(annotation, strict), value, path, is_refused=True)
    except (TypeError, RecursionError):
        found.clear()  # msgspec's own words are left
    if not found:
        found.append(_said(error, path, strict=strict))
    return [mistake(place, at, detail) for at, detail in found[:MISTAKES_MAX]]


class _Plan:
    """What is known of a type and of its parts, by which values are walked.

    Kept with the type, because clients make the same mistakes again and again. Those of parts are made when
    they are first needed: a type may contain itself.
    """

    __slots__ = (
        "_trial", "check", "fields", "forbids_others", "is_leaf", "is_seen_whole", "is_union", "kind", "node",
        "others", "strict",
    )  # fmt: skip

    def __init__(self, node: Any, strict: bool, others: dict[int, _Plan]) -> None:
        if type(node).__name__ == "Metadata":
            node = node.type
        self.node, self.strict, self.others = node, strict, others
        self.kind = kind = type(node).__name__
        self.is_leaf = kind in _LEAVES
        self.is_union = kind == "UnionType"
        item = getattr(node, "item_type", None)
        self.is_seen_whole = item is None or type(item).__name__ in _LEAVES
        self.check = check_of(node) if strict else None
        self.forbids_others = bool(getattr(node, "forbid_unknown_fields", False))
        self.fields: list[_Field] | None = None
        if kind in _RECORDS and not getattr(node, "array_like", False):
            self.fields = [_Field(one, self) for one in node.fields]
        self._trial: Trial | None = None

    def part(self, node: Any) -> _Plan:
        """The plan of a part of the type."""
        plan = self.others.get(id(node))
        if plan is None:
            plan = self.others[id(node)] = _Plan(node, self.strict, self.others)
        return plan

    @property
    def trial(self) -> Trial:
        """What msgspec says of a value."""
        trial = self._trial
        if trial is None:
            texts = _texts_of(self.node) if self.strict else None
            annotation = _annotation_of(self.node)
            trial = self._trial = Trial(self.node, annotation, strict=self.strict, texts=texts)
        return trial


class _Field:
    """A field of a record."""

    __slots__ = ("check", "name", "node", "of", "plan", "required")

    def __init__(self, field: Any, of: _Plan) -> None:
        self.name, self.required, self.node, self.of = (
            field.encode_name,
            field.required,
            field.type,
            of,
        )
        self.plan: _Plan | None = None
        self.check: Callable[[Any], bool] | None = None

    def planned(self) -> _Plan:
        """The plan of its type."""
        plan = self.plan
        if plan is None:
            plan = self.plan = self.of.part(self.node)
            self.check = plan.check
        return plan


class _Walk:
    """One pass over a value."""

    __slots__ = ("_found", "_left")

    def __init__(self, found: list[tuple[Places, str]]) -> None:
        self._found = found
        self._left = CHECKS_MAX

    def check(self, plan: _Plan, value: Any, path: Places, *, is_refused: bool = False) -> None:
        """Note the mistakes in ``value``, which should be of the type of ``plan``."""
        self._left -= 1
        if self._left < 0 or len(self._found) >= MISTAKES_MAX:
            return
        if plan.is_union:
            if value is None and any(type(one).__name__ == "NoneType" for one in plan.node.types):
                return
            plan = plan.part(_member(plan.node, value))
        if plan.is_leaf:
            return self._check_whole(plan, value, path)
        # Most parts are right: msgspec sees that before anything else.
        if not is_refused and plan.is_seen_whole and plan.trial.error(value) is None:
            return
        before = len(self._found)
        if plan.kind in _RECORDS:
            if plan.fields is not None and isinstance(value, dict):
                self._check_fields(plan, plan.fields, value, path)  # pyright: ignore[reportUnknownArgumentType]
        else:
            for inner, part, name in _items(plan.node, plan.kind, value):
                self.check(plan.part(inner), part, (*path, name))
                if self._is_over:
                    return
        if len(self._found) == before:
            self._check_whole(plan, value, path)

    def _check_fields(
        self, plan: _Plan, fields: list[_Field], value: dict[str, Any], path: Places
    ) -> None:
        """Note the mistakes in the parts of a record, but for those that are right by what is known."""
        get = value.get
        for field in fields:
            name = field.name
            part = get(name, _MISSING)
            if part is _MISSING:
                if field.required:
                    self._found.append(((*path, name), "missing"))
            else:
                check = field.check
                if check is not None and check(part):
                    continue
                self.check(field.planned(), part, (*path, name))
            if self._is_over:
                return
        if plan.forbids_others:
            known = {field.name for field in fields}
            for name in value.keys() - known - {plan.node.tag_field}:
                self._found.append(((*path, name), "unknown field"))
                if self._is_over:
                    return

    @property
    def _is_over(self) -> bool:
        return self._left < 0 or len(self._found) >= MISTAKES_MAX

    def _check_whole(self, plan: _Plan, value: Any, path: Places) -> None:
        """Note what is wrong with a value whose parts are right: type, range, number of items."""
        trial = plan.trial
        if trial.fits(value):
            return
        key = trial.text_key(value)
        detail = trial.texts.get(key)
        if detail is not None:
            self._found.append((path, detail))
            return
        error = trial.error(value)
        if error is not None:
            at, detail = _said(error, path, strict=plan.strict)
            detail = _allowed(plan.node) or detail
            if at == path and type(key) is str:
                trial.texts[key] = detail
            self._found.append((at, detail))


_MISSING: Any = object()


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


def _texts_of(node: Any) -> dict[type | str, str]:
    """What is wrong with values of classes that a type never takes."""
    allowed = _allowed(node)
    expected = _WORDS.get(type(node).__name__.removesuffix("Type").lower())
    return {
        cls: allowed or f"expected {expected}, got {_CLASS_WORDS[cls]}"
        for cls in refused_classes(node)
    }


def _plan_of(annotation: Any, strict: bool) -> _Plan:
    try:
        return _read(annotation, strict)
    except TypeError:  # an annotation that cannot be hashed, or that is no type
        return _read.__wrapped__(annotation, strict)


@functools.cache
def _read(annotation: Any, strict: bool) -> _Plan:
    """The plan of a type; there are as many as routes declare."""
    import msgspec.inspect

    return _Plan(msgspec.inspect.type_info(annotation), strict, {})


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
