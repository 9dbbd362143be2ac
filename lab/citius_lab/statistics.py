"""Intervals and ratios over restarts: numbers in, numbers out.

Values are treated on the log scale, because servers differ by factors. The unit of repetition is
the restart: an interval says how far another set of restarts might land.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

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
    """Return the geometric mean of positive values with its 95 % bootstrap interval.

    The bootstrap distribution of the mean of so few values is too narrow by a known factor,
    t/z · √(n/(n-1)) (Hesterberg 2015); deviations from the centre are widened by it.
    """
    logs = np.log(np.asarray(values, dtype=float))
    n_values = len(logs)
    centre = float(logs.mean())
    if n_values < 2:
        return Interval(math.exp(centre), None, None)
    low, high = np.quantile(_resampled_means(logs), [0.025, 0.975])
    widen = t_975(n_values - 1) / Z_975 * math.sqrt(n_values / (n_values - 1))
    return Interval(
        math.exp(centre),
        math.exp(centre + (float(low) - centre) * widen),
        math.exp(centre + (float(high) - centre) * widen),
    )


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
    freedom = total**2 / parts if parts > 0 else 1e9
    margin = t_975(max(1, int(freedom))) * math.sqrt(total)
    return Interval(math.exp(centre), math.exp(centre - margin), math.exp(centre + margin))


def is_tie(ratio: Interval | None, margin: float) -> bool:
    """Tell whether a ratio leaves open which of the two is more.

    Differences below ``margin`` do not matter, whatever the interval says.
    """
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    return ratio.low <= 1 + margin and ratio.high >= 1 - margin


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


def t_975(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t."""
    if freedom <= len(T_975):
        return T_975[freedom - 1]
    # Cornish-Fisher: right to four digits from ten degrees of freedom on.
    z = Z_975
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def _resampled_means(values: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Return the means of all resamples, or of enough of them where all are too many."""
    n_values = len(values)
    if n_values**n_values <= RESAMPLES_ALL_MAX:
        indices = _all_resamples(n_values)
    else:
        indices = np.random.default_rng(0).integers(0, n_values, (RESAMPLES, n_values))
    return values[indices].mean(axis=1)


@cache
def _all_resamples(n_values: int) -> Any:
    return np.array(list(itertools.product(range(n_values), repeat=n_values)))


RESAMPLES_ALL_MAX = 50_000
RESAMPLES = 20_000
Z_975 = 1.959963984540054
T_975 = (12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281)
