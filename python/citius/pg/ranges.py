"""Ranges of values, as PostgreSQL's range types have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

_T = TypeVar("_T")
Bounds = Literal["[)", "[]", "(]", "()"]


@dataclass(frozen=True, slots=True)
class Range(Generic[_T]):
    """A range; ``None`` is a bound that there is not. A multirange is a list of ranges.

    The server writes ranges of ``int4``, ``int8`` and ``date`` with the bounds ``[)``, whichever it is given.
    """

    lower: _T | None = None
    upper: _T | None = None
    bounds: Bounds = "[)"
    """Which bounds are values of the range: ``[`` and ``]`` are, ``(`` and ``)`` are not."""
    is_empty: bool = False

    def __post_init__(self) -> None:
        if self.bounds not in ("[)", "[]", "(]", "()"):
            raise ValueError(f"the bounds of a range are [), [], (] or (), not {self.bounds!r}")

    def __contains__(self, value: object) -> bool:
        """Whether a value lies in the range."""
        given: Any = value
        if self.is_empty:
            return False
        lower: Any = self.lower
        upper: Any = self.upper
        is_above = lower is None or given > lower or (given == lower and self.bounds[0] == "[")
        is_below = upper is None or given < upper or (given == upper and self.bounds[1] == "]")
        return is_above and is_below

    def __bool__(self) -> bool:
        """Whether it is not empty."""
        return not self.is_empty

    def __str__(self) -> str:
        if self.is_empty:
            return "empty"
        lower, upper = ("" if one is None else one for one in (self.lower, self.upper))
        return f"{self.bounds[0]}{lower},{upper}{self.bounds[1]}"
