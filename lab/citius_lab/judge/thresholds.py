"""Conditions for CI: ``METRIC OP VALUE``, as in ``ratio<0.95``, ``p99>20ms``, ``errors>0.1%``.

A condition is about the application under test; ratios are its figure over each of the others'. It
holds if the whole 95 % interval says so: a build must not fail by noise. What cannot be told because
there is no figure holds: a gate must not open because there is nothing to see.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from citius_lab.errors import LabError
from citius_lab.judge.figures import FAILED
from citius_lab.judge.statistics import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius_lab.judge.figures import Figure


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; times are in ms, shares are shares."""

    metric: str
    is_less: bool
    threshold: float
    text: str

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read one.

        Raises:
            LabError: It is none.
        """
        match = FORM.fullmatch(text.replace(" ", ""))
        if match is None or match["metric"] not in UNITS:
            raise LabError(
                f"expected METRIC OP VALUE such as ratio<0.95, cpu-ratio>1.05, p99>20ms, rps<1000, "
                f"errors>0.1%, got {text!r}; metrics: {', '.join(UNITS)}; operators: < >"
            )
        units = UNITS[match["metric"]]
        if match["unit"] not in units:
            known = ", ".join(unit or "none" for unit in units)
            raise LabError(
                f"{text!r}: {match['metric']} has the units {known}, got {match['unit']!r}"
            )
        value = float(match["value"]) * units[match["unit"]]
        return cls(match["metric"], match["operator"] == "<", value, text)

    def held_by(self, subject: Figure, others: Sequence[Figure]) -> list[str]:
        """Return where it holds, one sentence each; nothing if it does not."""
        if subject.verdict.word == FAILED:
            return [f"{self.text}: {subject.contestant} failed: {subject.verdict.reasons[0]}"]
        if self.metric in ("ratio", "cpu-ratio"):
            return [line for other in others for line in self._ratio_lines(other)]
        value = self._value(subject)
        return [f"{self.text}: {text(value)}"] if self._holds(value) else []

    def _ratio_lines(self, other: Figure) -> list[str]:
        """The other's ratio is to the subject; here it is the subject's to the other."""
        if other.verdict.word == FAILED:
            return []
        theirs = other.ratio if self.metric == "ratio" else other.cpu_ratio
        mine = None if theirs is None else theirs.inverse()
        return [f"{self.text}: {text(mine)} × {other.contestant}"] if self._holds(mine) else []

    def _value(self, figure: Figure) -> Interval | None:
        if self.metric == "rps":
            return figure.rate
        if self.metric == "cpu-us":
            return figure.cpu_us
        if self.metric == "errors":
            return Interval(figure.error_share, figure.error_share, figure.error_share)
        if self.metric == "pss-mb":
            value = (figure.pss_kib or 0) * 1024 / 1e6
            return Interval(value, value, value)
        return figure.latency_ms.get(self.metric)

    def _holds(self, value: Interval | None) -> bool:
        if value is None:
            return True
        if self.is_less:
            return (value.value if value.high is None else value.high) < self.threshold
        return (value.value if value.low is None else value.low) > self.threshold


def text(value: Interval | None) -> str:
    """Return a value with its interval."""
    if value is None:
        return "no figure"
    if value.low is None or value.high is None:
        return f"{value.value:.3g}"
    return f"{value.value:.3g} ({value.low:.3g}–{value.high:.3g})"


FORM = re.compile(r"(?P<metric>[a-z0-9.-]+?)(?P<operator>[<>])(?P<value>[0-9.]+)(?P<unit>[a-zµ%]*)")
_TIMES = {"ms": 1.0, "us": 1e-3, "µs": 1e-3, "s": 1e3}
UNITS: dict[str, dict[str, float]] = {
    "ratio": {"": 1.0},
    "cpu-ratio": {"": 1.0},
    "rps": {"": 1.0},
    "cpu-us": {"": 1.0},
    "errors": {"": 1.0, "%": 0.01},
    "pss-mb": {"": 1.0},
    "p50": _TIMES,
    "p75": _TIMES,
    "p90": _TIMES,
    "p99": _TIMES,
    "p99.9": _TIMES,
}
