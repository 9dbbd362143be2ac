"""The logarithmic axis that all plots share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from citius_lab.judge.statistics import Interval


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from ``low`` to ``high`` on places from ``start`` to ``end``, logarithmically."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def over(cls, values: Iterable[float], start: float, end: float) -> Scale:
        """Choose ends at 1, 2 or 5 times a power of ten, apart by a factor of four at least."""
        known = [value for value in values if value > 0]
        low, high = min(known), max(known)
        if high / low < SPAN_MIN:
            middle = math.sqrt(low * high)
            low, high = min(low, middle / 2), max(high, middle * 2)
        return cls(_step_below(low), _step_above(high), start, end)

    def at(self, value: float) -> float:
        """Return the place of a value; what is beyond an end stands at it."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + min(1.0, max(0.0, share)) * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Tell whether a value is on the axis, not beyond an end of it."""
        return self.low * 0.999 <= value <= self.high * 1.001

    def ticks(self) -> list[float]:
        """Return what is labelled: powers of ten, and 2 and 5 between them if there is room."""
        room = abs(self.end - self.start) / math.log10(self.high / self.low)
        steps = (1, 2, 5) if room >= ROOM_FINE else (1, 3) if room >= ROOM_MIDDLE else (1,)
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        ticks = [step * 10.0**power for power in powers for step in steps]
        return [tick for tick in ticks if self.holds(tick)]


def ends(value: Interval | None) -> list[float]:
    """Return the ends of an interval that has any."""
    return [] if value is None else [end for end in (value.low, value.high) if end]


def scale_ends(values: Iterable[float], whiskers: Iterable[float]) -> list[float]:
    """Return what an axis has to hold: all values, and ends of intervals that are not far out.

    An interval over few restarts of a disturbed machine may span many powers of ten; an axis that
    held all of it would press the values into one place.
    """
    known = [value for value in values if value > 0]
    if not known:
        return []
    low, high = min(known) / FAR, max(known) * FAR
    return [*known, *(min(max(end, low), high) for end in whiskers)]


def _step_below(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value * 1.0001)


def _step_above(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return min(step * power for step in (1, 2, 5, 10) if step * power >= value * 0.9999)


# An axis ends so many times below and above its values, however wide an interval is.
FAR = 4
SPAN_MIN = 4
# Pixels per decade from which labels do not touch.
ROOM_FINE = 95
ROOM_MIDDLE = 62
