"""Decides from a series of rates when a server had warmed up.

A pure function. The series is cut at the earliest step from which on nothing moves any more: both
halves of the rest have the same mean, within what the steps themselves scatter. What a JIT does
later than the series is long cannot be seen here, and is reported as "never within n s" only if
the end of the series still moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class WarmUp:
    """When a server was steady.

    Attributes:
        steady_after_s: ``None``: not within what was watched.
        watched_s: How long was looked.
        gain: The steady rate over the rate of the first step; 1 says that there is no warm-up.
        is_decided: Whether there were steps enough to tell.
    """

    steady_after_s: float | None
    watched_s: float
    gain: float | None
    is_decided: bool = True

    def text(self) -> str:
        """Return it in words."""
        if self.steady_after_s is None:
            return f"never within {self.watched_s:.1f} s"
        return "at once" if self.steady_after_s == 0 else f"after {self.steady_after_s:.1f} s"

    def as_record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "steady_after_s": self.steady_after_s,
            "watched_s": self.watched_s,
            "gain": self.gain,
        }


def find(counts: Sequence[int], step_s: float) -> WarmUp:
    """Find the earliest step from which on the rate is steady.

    Args:
        counts: Requests answered in each step, in order.
        step_s: Length of a step.
    """
    watched_s = len(counts) * step_s
    for start in range(len(counts) - STEPS_MIN + 1):
        rest = counts[start:]
        if _is_level(rest):
            mean = sum(rest) / len(rest)
            gain = mean / counts[0] if counts[0] else None
            return WarmUp(round(start * step_s, 6), watched_s, gain)
    return WarmUp(None, watched_s, None, len(counts) >= STEPS_MIN)


def _is_level(counts: Sequence[int]) -> bool:
    """Tell whether both halves have one mean, and the first step is not out of line."""
    half = len(counts) // 2
    mean = sum(counts) / len(counts)
    if mean == 0:
        return False
    deviation = math.sqrt(sum((count - mean) ** 2 for count in counts) / (len(counts) - 1))
    early, late = sum(counts[:half]) / half, sum(counts[-half:]) / half
    # Counting noise bounds the scatter from below; two standard errors of the halves' difference.
    scatter = max(min(deviation, SCATTER_MAX * mean), math.sqrt(mean))
    allowed = max(LEVEL * mean, 2 * scatter * math.sqrt(2 / half))
    first_allowed = max(FIRST_STEP * mean, 3 * math.sqrt(mean))
    return abs(late - early) <= allowed and abs(counts[0] - mean) <= first_allowed


# Fewer steps than these decide nothing.
STEPS_MIN = 4
# Halves that differ by less are level whatever the scatter.
LEVEL = 0.05
# A series that scatters more does not get a wider margin for it.
SCATTER_MAX = 0.10
# The first of the steady steps may be off the mean by this share.
FIRST_STEP = 0.20
