"""Whether other load generators agree: a table of their figures over the lab's own, and sentences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from citius_lab.judge.verdict import GENERATOR_MAX, SATURATED_MIN
from citius_lab.report import words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from citius_lab.judge.figures import Outside
    from citius_lab.judge.statistics import Interval
    from citius_lab.report.view import View


@dataclass(frozen=True, slots=True)
class OutsideRow:
    """One tool on one contestant; the numbers are what rows are sorted by."""

    contestant: str
    place: str
    tool: str
    rate: str
    cpu: str
    numbers: tuple[float | None, float | None]
    share: str
    server_share: str
    said: str


@dataclass(frozen=True, slots=True)
class OutsidePart:
    """What ``templates/parts/outside.html`` shows: a sentence for each tool, and every figure of theirs."""

    said: tuple[str, ...]
    rows: tuple[OutsideRow, ...]

    kind: ClassVar[str] = "outside"


def part(view: View, experiment: str) -> OutsidePart | None:
    """Return what other load generators said in an experiment; ``None`` if none was asked."""
    found = [one for one in view.analysis.outside if one.section.startswith(f"{experiment}/")]
    titles = {section.id: section.title for section in view.sections(experiment)}
    rows = tuple(_row(one, titles.get(one.section, one.section)) for one in found)
    return OutsidePart(tuple(findings(found)), rows) if rows else None


def _row(one: Outside, title: str) -> OutsideRow:
    numbers = tuple(None if value is None else value.value for value in (one.rate, one.cpu))
    return OutsideRow(
        one.contestant,
        f"{title}, {one.case}",
        one.tool,
        _ratio(one.rate),
        _ratio(one.cpu),
        (numbers[0], numbers[1]),
        f"{one.share:.0%}" if one.rate is not None else "",
        f"{one.server_share:.0%}" if one.rate is not None else "",
        _said(one),
    )


def _ratio(value: Interval | None) -> str:
    return "–" if value is None else f"×{words.times(value.value)} ({words.span(value)})"


def _said(one: Outside) -> str:
    if one.rate is None:
        return "; ".join(one.faults) or "the lab's own measurement failed"
    found = [f"{one.errors} errors"] if one.errors else []
    if one.rate.value < 1 and not _drives(one):
        found.append(f"it keeps the server {one.server_share:.0%} busy: the rate is the tool's own")
    return "; ".join(found)


def _drives(one: Outside) -> bool:
    """Tell whether a tool drove the server to its limit."""
    return one.share <= GENERATOR_MAX and one.server_share >= SATURATED_MIN


def findings(outside: Sequence[Outside]) -> list[str]:
    """Return a sentence for each tool: over all that it was asked, how far it is from the lab's figures."""
    found: list[str] = []
    for tool in dict.fromkeys(one.tool for one in outside):
        own = [one for one in outside if one.tool == tool and one.rate is not None]
        limited = [one for one in own if _drives(one)]
        slack = [one for one in own if not _drives(one)]
        parts = (
            [f"{_costs(limited)} and {_rates(limited)}, where it drives the server to its limit"]
            if limited
            else []
        )
        if slack:
            parts.append(f"{_costs(slack)}, where it is the limit itself")
        if parts:
            said = f"{tool}, on the same processes in the same rounds, finds {'; '.join(parts)}"
            found.append(f"{said} (× what the lab's own load generator finds).")
    return found


def _costs(found: list[Outside]) -> str:
    values = sorted(one.cpu.value for one in found if one.cpu is not None)
    return f"{_range(values)} of the CPU time" if values else "no CPU time"


def _rates(found: list[Outside]) -> str:
    return f"{_range(sorted(one.rate.value for one in found if one.rate is not None))} of the rate"


def _range(values: list[float]) -> str:
    low, high = words.times(values[0]), words.times(values[-1])
    return f"×{low}" if low == high else f"×{low} to ×{high}"
