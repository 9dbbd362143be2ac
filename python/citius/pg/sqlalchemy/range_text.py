"""Ranges in PostgreSQL's text format (8.17 of its manual): ``[1,10)``, ``empty``, ``{[1,2),[5,9)}``."""

# SQLAlchemy's ranges are generic in a way that pyright does not follow.
# pyright: basic

from __future__ import annotations

import re
from datetime import date
from typing import Any

from sqlalchemy.dialects.postgresql.ranges import MultiRange, Range

# One bound: quoted, with a backslash or a quote before what would end it, or plain.
_BOUND = r'(?:"((?:[^"\\]|\\.|"")*)"|([^,\[\]()"]*))'
_RANGE = re.compile(rf"empty|([\[(]){_BOUND},{_BOUND}([\])])", re.DOTALL)


def encode(value: Range[Any]) -> str:
    """The text of a range."""
    if value.empty:
        return "empty"
    lower, upper = ("" if one is None else _quoted(one) for one in (value.lower, value.upper))
    return f"{value.bounds[0]}{lower},{upper}{value.bounds[1]}"


def _quoted(bound: object) -> str:
    text = bound.isoformat() if isinstance(bound, date) else str(bound)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def of(value: Any) -> Range[Any]:
    """The range for one of ``citius.pg``, or for the text of one whose bounds come as text only."""
    if isinstance(value, str):
        found = _RANGE.fullmatch(value)
        if found is None:
            raise ValueError(f"not a range: {value!r}")
        return _of_text(found)
    return Range(value.lower, value.upper, bounds=value.bounds, empty=value.is_empty)


def multi_of(value: Any) -> MultiRange[Any]:
    """The multirange for a list of ranges, or for its text."""
    if isinstance(value, str):
        return MultiRange(map(_of_text, _RANGE.finditer(value)))
    return MultiRange(map(of, value))


def _of_text(found: re.Match[str]) -> Range[Any]:
    if found[1] is None:
        return Range(empty=True)
    lower, upper = (_bound(found[at], found[at + 1]) for at in (2, 4))
    return Range(lower, upper, bounds=found[1] + found[6])  # type: ignore[arg-type]


def _bound(quoted: str | None, plain: str) -> str | None:
    if quoted is not None:
        return re.sub(r'\\(.)|"(")', r"\1\2", quoted, flags=re.DOTALL)
    return plain or None
