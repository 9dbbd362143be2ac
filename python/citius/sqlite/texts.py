"""Statements and parameters as SQLite takes them.

In: a statement with ``$1``, ``$2``, … (or ``?``), or a t-string, and Python values. Out: the text with
``?1``, ``?2``, … and values that SQLite stores. Parameters are never part of the text.
"""

from __future__ import annotations

import datetime
import enum
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec

from citius.databases.templates import render

# What SQLite reads as one token that may hold a `$`: texts, names, comments; or a parameter.
_TOKEN = re.compile(
    r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|\$([0-9]+)"
)
_KEPT = 512
# First words of statements that only read, or may.
_READING = frozenset(("select", "values", "with", "explain"))
_STORED = (int, float, str, bytes, bytearray, memoryview)


@lru_cache(_KEPT)
def _numbered(sql: str) -> str:
    if "$" not in sql:
        return sql
    return _TOKEN.sub(lambda found: f"?{found[1]}" if found[1] else found[0], sql)


def prepare(sql: Any, arguments: tuple[object, ...]) -> tuple[str, tuple[object, ...]]:
    """A statement's text and its parameters, as SQLite takes them.

    Raises:
        TypeError: It is no statement.
    """
    if type(sql) is not str:
        sql, arguments = render(sql, arguments)
    return _numbered(sql), parameters(arguments)


def parameters(values: Any) -> tuple[object, ...]:
    """Parameters as values that SQLite stores."""
    return tuple(value if type(value) in _STORED else _stored(value) for value in values)


def _stored(value: object) -> object:
    """Dates and times in the forms that SQLite's functions read; lists, dicts and Structs as JSON."""
    if value is None or isinstance(value, (int, float, str, bytes)):
        return value
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, (UUID, Decimal)):
        return str(value)
    if isinstance(value, enum.Enum):
        return _stored(value.value)
    try:
        return msgspec.json.encode(value).decode()
    except TypeError:
        raise TypeError(
            f"a parameter is a number, text, bytes, a date or time, UUID, Decimal, or what JSON has; "
            f"got {type(value).__name__}"
        ) from None


def may_only_read(sql: str) -> bool:
    """Whether a statement's first word is that of one that reads."""
    return sql.lstrip()[:8].partition(" ")[0].strip("(\n\t").lower() in _READING
