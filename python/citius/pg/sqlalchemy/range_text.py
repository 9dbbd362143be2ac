"""Ranges in PostgreSQL's text format (8.17 of its manual): ``[1,10)``, ``empty``, ``{[1,2),[5,9)}``."""

# SQLAlchemy's ranges are generic in a way that pyright does not follow.
# pyright: basic

from __future__ import annotations

import re
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects.postgresql.ranges import MultiRange, Range

if TYPE_CHECKING:
    from collections.abc import Callable

    Element = Callable[[str], Any]


def _day(text: str) -> date:
    """A date; what has no end ends where Python does, as in columns."""
    infinite = {"infinity": date.max, "-infinity": date.min}
    return infinite.get(text) or date.fromisoformat(text)


def _moment(text: str) -> datetime:
    """A timestamp of the text format; an offset has hours alone where it can."""
    if text.endswith("infinity"):
        return datetime.combine(_day(text), datetime.min.time())
    return datetime.fromisoformat(re.sub(r"([+-]\d\d)$", r"\1:00", text))


# By the identity in pg_type: of a range, of an array of it, and of a multirange.
_ELEMENTS: dict[int, Element] = {
    3904: int, 3905: int, 4451: int,
    3926: int, 3927: int, 4536: int,
    3906: Decimal, 3907: Decimal, 4532: Decimal,
    3908: _moment, 3909: _moment, 4533: _moment,
    3910: _moment, 3911: _moment, 4534: _moment,
    3912: _day, 3913: _day, 4535: _day,
}  # fmt: skip

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


def decoder(oid: int) -> Callable[[str], Range[Any]]:
    """What reads a range of this type; bounds of types that PostgreSQL does not bring stay text."""
    element = _ELEMENTS.get(oid, str)

    def decode(text: str) -> Range[Any]:
        found = _RANGE.fullmatch(text)
        if found is None:
            raise ValueError(f"not a range: {text!r}")
        return _range_of(found, element)

    return decode


def multi_decoder(oid: int) -> Callable[[str], MultiRange[Any]]:
    """What reads a multirange of this type."""
    element = _ELEMENTS.get(oid, str)
    return lambda text: MultiRange(_range_of(one, element) for one in _RANGE.finditer(text))


def _range_of(found: re.Match[str], element: Element) -> Range[Any]:
    if found[1] is None:
        return Range(empty=True)
    lower, upper = (_bound(found[at], found[at + 1], element) for at in (2, 4))
    return Range(lower, upper, bounds=found[1] + found[6])  # type: ignore[arg-type]


def _bound(quoted: str | None, plain: str, element: Element) -> Any:
    if quoted is not None:
        return element(re.sub(r'\\(.)|"(")', r"\1\2", quoted, flags=re.DOTALL))
    return element(plain) if plain else None
