"""What becomes of the rows of a statement: tuples, dicts, objects of a class, JSON.

SQLite has integers, reals, texts and blobs. What else there is stands in texts and integers, and is read by
the annotations of the class that ``as_`` names, or, in JSON, by the end of a column's name: ``"tags [json]"``
is written as it is, ``"open [bool]"`` as ``true`` or ``false``. The decoder of a class is made once.
"""

from __future__ import annotations

import base64
import types
import typing
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, cast, get_args, get_origin
from uuid import UUID

import msgspec

from citius.sqlite.errors import RowMismatch

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    Row = tuple[Any, ...]
    Converter = Callable[[Any], Any]

_PLAIN = (int, float, str, bytes, object, Any)
_FROM_TEXT = (bool, datetime, date, time, timedelta, Decimal, UUID)
_KEPT = 256
# Reads JSON without making objects of it, so that a text that is none is refused.
_check = msgspec.json.Decoder(msgspec.Raw).decode
_encode = msgspec.json.Encoder(enc_hook=lambda value: base64.b64encode(value).decode()).encode


def names_of(cursor: sqlite3.Cursor) -> tuple[str, ...]:
    """The names of the columns, without what they say of the type."""
    return tuple(_split(column[0])[0] for column in cursor.description or ())


def _split(name: str) -> tuple[str, str]:
    """``"tags [json]"`` is the column ``tags`` and the type ``json``."""
    if name.endswith("]"):
        before, bracket, kind = name[:-1].rpartition(" [")
        if bracket and kind in {"json", "bool"}:
            return before, kind
    return name, ""


def make_rows(cursor: sqlite3.Cursor, rows: list[Row], as_: Any) -> list[Any]:
    """Rows as ``as_`` asks for.

    Raises:
        RowMismatch: A column does not become what the class says.
        TypeError: The class does not take the columns.
    """
    if as_ is None or as_ is tuple or not rows:
        return rows
    names = names_of(cursor)
    if as_ is dict:
        return [dict(zip(names, row, strict=True)) for row in rows]
    return _maker(as_, names)(rows)


@lru_cache(_KEPT)
def _maker(as_: Any, names: tuple[str, ...]) -> Callable[[list[Row]], list[Any]]:
    """What makes objects of a class of rows with these columns."""
    if not isinstance(as_, type):
        raise TypeError("as_ is tuple, dict or a class (a Struct, a dataclass)")
    converters = _converters(as_, names)

    def make(rows: list[Row]) -> list[Any]:
        made: list[Any] = []
        for row in rows:
            values = dict(zip(names, row, strict=True))
            for name, convert in converters:
                value = values[name]
                if value is not None:
                    values[name] = _converted(as_, name, convert, value)
            made.append(as_(**values))
        return made

    return make


def _converted(as_: type, name: str, convert: Converter, value: Any) -> Any:
    try:
        return convert(value)
    except (msgspec.MsgspecError, TypeError, ValueError) as error:
        shown = repr(value) if len(repr(value)) < 60 else f"{repr(value)[:57]}..."
        raise RowMismatch(f"column {name!r} of {as_.__name__}: {error}; got {shown}") from None


def _converters(as_: type, names: tuple[str, ...]) -> list[tuple[str, Converter]]:
    try:
        hints = typing.get_type_hints(as_, include_extras=True)
    except (NameError, TypeError):  # names that only a type checker sees
        return []
    found = ((name, _converter(hints[name])) for name in names if name in hints)
    return [(name, convert) for name, convert in found if convert is not None]


def _converter(hint: Any) -> Converter | None:
    """How a value of SQLite becomes one of this type; ``None``: it is one."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _converter(get_args(hint)[0])
    if origin in (Union, types.UnionType):
        inner = [argument for argument in get_args(hint) if argument is not types.NoneType]
        if len(inner) == 1:
            return _converter(inner[0])
        return None if all(_converter(argument) is None for argument in inner) else _lax(hint)
    if hint in _PLAIN or isinstance(hint, typing.TypeVar):
        return None
    if (
        hint in _FROM_TEXT
        or origin is Literal
        or (isinstance(hint, type) and issubclass(hint, Enum))
    ):
        return _lax(hint)
    return msgspec.json.Decoder(cast("Any", hint)).decode


def _lax(hint: Any) -> Converter:
    return partial(msgspec.convert, type=hint, strict=False)


def encode_rows(cursor: sqlite3.Cursor, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as objects for JSON; a column ``a.b`` is the member ``b`` of an object ``a``.

    Raises:
        RowMismatch: A column ``[json]`` is no JSON.
    """
    columns = [_split(column[0]) for column in cursor.description or ()]
    if all(not kind and "." not in name for name, kind in columns):
        names = [name for name, _ in columns]
        return [dict(zip(names, row, strict=True)) for row in rows]
    plan = [(name.partition("."), kind) for name, kind in columns]
    made: list[dict[str, Any]] = []
    for row in rows:
        item: dict[str, Any] = {}
        for ((outer, dot, inner), kind), value in zip(plan, row, strict=True):
            written = _written(inner or outer, kind, value)
            if dot:
                item.setdefault(outer, {})[inner] = written
            else:
                item[outer] = written
        made.append(item)
    return made


def _written(name: str, kind: str, value: Any) -> Any:
    if value is None or not kind:
        return value
    if kind == "bool":
        return bool(value)
    try:
        return _check(value)
    except (msgspec.MsgspecError, TypeError) as error:
        raise RowMismatch(f"column {name!r} is not JSON: {error}") from None


def json_of(value: object) -> bytes:
    """A value as JSON; blobs in base64."""
    return _encode(value)
