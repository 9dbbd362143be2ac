"""Intervals and ratios over restarts: numbers in, numbers out.

Values are treated on the log scale, because servers differ by factors. The unit of repetition is
the restart: an interval says how far another set of restarts might land.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Interval:
    """A value with its 95 % interval.

    Attributes:
        low: ``None``, like ``high``, where a single restart says nothing about another.
    """

    value: float
    low: float | None
    high: float | None

    @property
    def spread(self) -> float | None:
        """Half the interval's width as a share of the value."""
        if self.low is None or self.high is None:
            return None
        return math.sqrt(self.high / self.low) - 1

    def inverse(self, factor: float = 1.0) -> Interval:
        """Return ``factor`` over this."""
        low = None if self.high is None else factor / self.high
        high = None if self.low is None else factor / self.low
        return Interval(factor / self.value, low, high)


def interval(values: Sequence[float]) -> Interval:
    """Return the geometric mean of positive values with its 95 % interval: Student's t on logarithms."""
    logs = np.log(np.asarray(values, dtype=float))
    n_values = len(logs)
    centre = float(logs.mean())
    if n_values < 2:
        return Interval(math.exp(centre), None, None)
    margin = t_975(n_values - 1) * float(logs.std(ddof=1)) / math.sqrt(n_values)
    return Interval(math.exp(centre), math.exp(centre - margin), math.exp(centre + margin))


def restarts_for(values: Sequence[float], spread: float, most: int) -> int | None:
    """Return how many restarts would make an interval as narrow as ``spread``; ``None`` beyond ``most``.

    It supposes that further restarts differ as these do.
    """
    deviation = float(np.log(np.asarray(values, dtype=float)).std(ddof=1))
    for n_values in range(2, most + 1):
        if t_975(n_values - 1) * deviation / math.sqrt(n_values) <= math.log1p(spread):
            return n_values
    return None


def paired_ratio(own: Mapping[int, float], other: Mapping[int, float]) -> Interval | None:
    """Return the ratio of two contestants, paired by round so that drift of the machine cancels."""
    rounds = sorted(own.keys() & other.keys())
    return interval([own[number] / other[number] for number in rounds]) if rounds else None


def unpaired_ratio(own: Sequence[float], other: Sequence[float]) -> Interval | None:
    """Return the ratio of two sets of restarts of different runs, with Welch's interval on logs."""
    if not own or not other:
        return None
    logs = [np.log(np.asarray(values, dtype=float)) for values in (own, other)]
    centre = float(logs[0].mean() - logs[1].mean())
    if min(len(own), len(other)) < 2:
        return Interval(math.exp(centre), None, None)
    errors = [float(values.var(ddof=1)) / len(values) for values in logs]
    total = sum(errors)
    parts = sum(error**2 / (len(values) - 1) for error, values in zip(errors, logs, strict=True))
    freedom = total**2 / parts if parts > 0 else math.inf
    margin = t_975(freedom) * math.sqrt(total)
    return Interval(math.exp(centre), math.exp(centre - margin), math.exp(centre + margin))


class Relation(Enum):
    """What an interval of a ratio says of the two sides."""

    DIFFERENT = "different"
    # The whole interval lies within the margin around 1.
    EQUAL = "equal"
    # It reaches into the margin and beyond it: there may be a difference or none.
    UNKNOWN = "unknown"


def relation(ratio: Interval | None, margin: float) -> Relation:
    """Tell what a ratio says; differences below ``margin`` do not matter, whatever the interval says."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return Relation.UNKNOWN
    least, most = 1 / (1 + margin), 1 + margin
    if ratio.low > most or ratio.high < least:
        return Relation.DIFFERENT
    return Relation.EQUAL if least <= ratio.low and ratio.high <= most else Relation.UNKNOWN


def typical_deviation(ratios: Iterable[float]) -> float:
    """Return by which share ratios typically miss 1: the median of their distances, on logs.

    Unlike a mean it does not move while fewer than half of the ratios are disturbed.
    """
    return math.expm1(median(abs(math.log(ratio)) for ratio in ratios))


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive values."""
    return math.exp(float(np.mean(np.log(list(values)))))


def median(values: Iterable[float]) -> float:
    """Return the median."""
    return float(np.median(list(values)))


@functools.cache
def t_975(freedom: float) -> float:
    """Return the 97.5 % quantile of Student's t."""
    # Imported here: most commands need no interval. `scipy.stats` would take five times as long.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.975))
