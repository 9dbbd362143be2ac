"""Statements and parameters as SQLite takes them.

In: a statement with ``$1``, ``$2``, … (or ``?``), or a t-string, and Python values. Out: the text with
``?1``, ``?2``, … and values that SQLite stores. Parameters are never part of the text.
"""

from __future__ import annotations

import datetime
import enum
import math
import re
from decimal import Decimal
from functools import lru_cache
from itertools import takewhile
from typing import Any
from uuid import UUID

import msgspec

from citius.databases.templates import render

# What SQLite reads as one token that may hold a `$`: texts, names, comments; or a parameter.
_TOKEN = re.compile(
    r"'[^']*'|\"[^\"]*\"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|\$([0-9]+)"
)
_KEPT = 512
TEXT_CHARS_KEPT_MAX = 8 * 1024
"""What is found out of a longer text is not kept: it is mostly made for one request, such as a list of as
many parameters as a client has sent values."""
# What stands before the first word: white space, comments.
_BEFORE = re.compile(r"(?:[\s;\ufeff]+|--[^\n]*(?:\n|$)|/\*(?:[^*]|\*(?!/))*(?:\*/|$))*")
_PRAGMA = re.compile(r"pragma\s+(?:\w+\s*\.\s*)?(\w+)\s*([=(]?)", re.I)
_TEMPORARY = re.compile(r"create\s+temp(?:orary)?\b", re.I)
# Pragmas whose argument is no setting of the connection: they ask, or change the database file.
PRAGMAS_OF_THE_DATABASE = frozenset((
    "application_id", "auto_vacuum", "data_version", "encoding", "foreign_key_check", "foreign_key_list",
    "incremental_vacuum", "index_info", "index_list", "index_xinfo", "integrity_check", "optimize",
    "page_size", "quick_check", "table_info", "table_list", "table_xinfo", "user_version", "wal_checkpoint",
))  # fmt: skip
# Comments, and what else is one word of SQLite's: a text or name in quotes, a word, a sign.
_WORD = re.compile(
    r"--[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|\ufeff"
    r"|('[^']*+'|\"[^\"]*+\"|`[^`]*+`|\[[^\]]*+\]|[\w$\x80-\U0010ffff]++|\S)"
)
# What stands between the parentheses of a call without parameters.
_NO_PARAMETERS = (")", "*", "all", "distinct")
# First words of statements that only read, or may.
_READING = frozenset(("select", "values", "with", "explain"))
_STORED = (int, str, bytes, bytearray, memoryview)


def _numbered(sql: str) -> str:
    if "$" not in sql:
        return sql
    return _TOKEN.sub(lambda found: f"?{found[1]}" if found[1] else found[0], sql)


_kept_numbered = lru_cache(_KEPT)(_numbered)


def prepare(sql: Any, arguments: tuple[object, ...]) -> tuple[str, tuple[object, ...]]:
    """A statement's text and its parameters, as SQLite takes them.

    Raises:
        TypeError: It is no statement.
    """
    if type(sql) is not str:
        sql, arguments = render(sql, arguments)
    numbered = _kept_numbered if len(sql) <= TEXT_CHARS_KEPT_MAX else _numbered
    return numbered(sql), parameters(arguments)


def parameters(values: Any) -> tuple[object, ...]:
    """Parameters as values that SQLite stores."""
    return tuple(value if type(value) in _STORED else _stored(value) for value in values)


def _finite(value: float) -> float:
    if math.isnan(value):
        raise ValueError("a parameter is NaN, which SQLite would store as NULL")
    return value


def _stored(value: object) -> object:
    """Dates and times in the forms that SQLite's functions read; lists, dicts and Structs as JSON."""
    if isinstance(value, float):
        return _finite(value)
    if value is None or isinstance(value, (int, str, bytes)):
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


class Change(enum.Enum):
    """What a statement would change of the connection that executes it, beyond the database."""

    TRANSACTION = "begins or ends a transaction"
    SAVEPOINT = "begins or ends a savepoint"
    SETTINGS = "changes the connection that executes it"
    READS = "asks for what the connection did before"
    KEPT = "changes a setting that a database in memory keeps behind its block or script"
    PROCESS = "changes a setting of the whole process"


def change_of(sql: str) -> Change | None:
    """What a statement seems to change, to refuse it before it waits; ``Session`` has the last word."""
    return (_kept_change_of if len(sql) <= TEXT_CHARS_KEPT_MAX else _change_of)(sql)


def _change_of(sql: str) -> Change | None:
    start = _BEFORE.match(sql)
    rest = sql[start.end() :] if start is not None else sql
    word = "".join(takewhile(str.isalpha, rest[:16])).lower()
    if word in ("begin", "commit", "end"):
        return Change.TRANSACTION
    # `ROLLBACK` may be that of a savepoint.
    if word in ("savepoint", "release", "rollback"):
        return Change.SAVEPOINT
    if word in ("attach", "detach") or _TEMPORARY.match(rest):
        return Change.SETTINGS
    if (found := _PRAGMA.match(rest)) is not None:
        is_setting = found[2] and found[1].lower() not in PRAGMAS_OF_THE_DATABASE
        return Change.SETTINGS if is_setting else None
    return None


_kept_change_of = lru_cache(_KEPT)(_change_of)


def _words(sql: str) -> tuple[str, ...]:
    """Words, names, texts and signs without their quotes; no comments. Of a doubled quote there are two."""
    found = (word for word in _WORD.findall(sql) if word)
    return tuple(word.strip("'\"`[]").lower() if len(word) > 1 else word.lower() for word in found)


def calls(sql: str, function: str) -> bool:
    """Whether a text has a call of a function without parameters: ``changes()``, ``[changes] (*)``.

    A table, a column, a text or a comment of that name is none.
    """
    words = _words(sql)
    found = zip(words, words[1:], words[2:], strict=False)
    return any(
        name == function and opening == "(" and first in _NO_PARAMETERS
        for name, opening, first in found
    )


def makes_temporary_trigger(sql: str) -> bool:
    """Whether a text has ``CREATE TRIGGER temp.a``: SQLite tells of the table's schema only."""
    words = _words(sql)
    for at in range(len(words) - 1):
        if words[at : at + 2] == ("create", "trigger"):
            is_if = words[at + 2 : at + 5] == ("if", "not", "exists")
            place = at + 5 if is_if else at + 2
            if words[place : place + 2] == ("temp", "."):
                return True
    return False


def may_only_read(sql: str) -> bool:
    """Whether a statement's first word is that of one that reads."""
    return sql.lstrip()[:8].partition(" ")[0].strip("(\n\t").lower() in _READING
